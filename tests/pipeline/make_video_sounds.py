#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_video_sounds.py DIRECTORY [--golden]: writes the small clips of tests/pipeline/video_sounds with Debian 12's ffmpeg (5.1).

With --golden it writes what golden_video_sounds.tsv has of clips that are there, as `ffmpeg -i CLIP -f f32le` decodes them. A line: the
clip, its rate, channels and frames, when the first one sounds and when the first picture is shown, both in microseconds of the
container's time, and each 97th number, the channels of a frame side by side.
"""
import array
import json
import pathlib
import subprocess
import sys

EACH = 97
PICTURES = ["-f", "lavfi", "-i", "testsrc2=size=32x32:rate=25:duration=0.4"]
SOUND = ["-f", "lavfi", "-i", "aevalsrc=0.4*sin(2764*t)+0.2*sin(9000*t*t)|0.3*sin(1900*t)+0.3*sin(7000*t*t):s=%s:d=0.4"]
X264 = "-c:v libx264 -crf 40 -pix_fmt yuv420p "
MPEG4 = "-c:v mpeg4 -q:v 31 "
CLIPS = {  # name: (frames a second, arguments of ffmpeg)
    "aac.mp4": (16000, X264 + "-c:a aac -aac_pns 0 -b:a 32k"),
    "parts.mp4": (16000, X264 + "-c:a aac -aac_pns 0 -b:a 32k -movflags frag_keyframe+empty_moov"),
    "mp3.mkv": (16000, X264 + "-c:a libmp3lame -b:a 32k"),
    "opus.webm": (48000, "-c:v libvpx -b:v 20k -c:a libopus -b:a 24k"),
    "vorbis.ogg": (16000, "-c:v libtheora -q:v 1 -c:a libvorbis -q:a 1"),
    "pcm.avi": (8000, MPEG4 + "-c:a pcm_s16le"),
    "mulaw.mov": (8000, MPEG4 + "-c:a pcm_mulaw"),
    "flac.mkv": (8000, X264 + "-c:a flac"),
    "ac3.ts": (32000, X264 + "-c:a ac3 -b:a 96k"),
    "alac.m4a": (8000, "-vn -c:a alac"),
}
AGAIN = {  # of another clip, whose packets stay
    "late.mp4": ["-itsoffset", "0.1", "-i", "aac.mp4", "-i", "aac.mp4", "-map", "1:v", "-map", "0:a", "-c", "copy"],
    "edited.mp4": ["-ss", "0.2", "-i", "aac.mp4", "-c", "copy"],
    "silent.mp4": ["-i", "aac.mp4", "-an", "-c", "copy"],
}
SILENT = {"silent.mp4"}


def run(program, *arguments):
    command = [program, "-v", "error", *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


def make(folder):
    exact = ["-fflags", "+bitexact", "-flags", "+bitexact", "-map_metadata", "-1"]
    for name, (rate, arguments) in CLIPS.items():
        sound = [part.replace("%s", str(rate)) for part in SOUND]
        run("ffmpeg", "-nostdin", "-y", "-threads", 1, *PICTURES, *sound, *arguments.split(), *exact, folder / name)
    for name, arguments in AGAIN.items():
        run("ffmpeg", "-nostdin", "-y", *(folder / part if part in CLIPS else part for part in arguments), "-fflags", "+bitexact", folder / name)


def begin(path, kind):
    """Of what is heard or seen, in microseconds."""
    frames = json.loads(run("ffprobe", "-select_streams", kind, "-of", "json", "-show_frames", "-show_entries",
                            "frame=pts_time", path)).get("frames")
    return round(float(frames[0]["pts_time"]) * 1000000) if frames else 0


def golden(folder):
    for path in sorted(folder.iterdir()):
        if path.name in SILENT:
            continue
        probe = ["-select_streams", "a", "-of", "json", "-show_entries", "stream=sample_rate,channels", path]
        stream = json.loads(run("ffprobe", *probe))["streams"][0]
        numbers = array.array("f", run("ffmpeg", "-nostdin", "-i", path, "-f", "f32le", "-"))
        print(path.name, stream["sample_rate"], stream["channels"], len(numbers) // stream["channels"], begin(path, "a"),
              begin(path, "v"), ",".join(f"{number:.5f}" for number in numbers[::EACH]), sep="\t")


if __name__ == "__main__":
    (golden if "--golden" in sys.argv else make)(pathlib.Path(sys.argv[1]))
