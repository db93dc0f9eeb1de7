#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_videos.py DIRECTORY [--golden]: writes the small clips of tests/pipeline/videos with Debian 12's ffmpeg (5.1).

With --golden it writes what golden_videos.tsv has of clips that are there: ffmpeg decodes each from its beginning, in its own
order of frames, and what it has decoded (planes, as they are) becomes RGB here, by numpy, and is compared with ffmpeg's RGB.
A line: the clip, its width, height and frames, the times of frames in microseconds, and the CRC-32 of each frame's RGB.
"""
import json
import pathlib
import subprocess
import sys
import zlib

SOURCE = ["-f", "lavfi", "-i", "testsrc2=size=%s:rate=25:duration=%s,scroll=h=.03:v=.02"]
X264 = "-c:v libx264 -preset slow -crf 30 -g 8 -bf 3 -pix_fmt yuv420p"
CLIPS = {  # name: (size, seconds, arguments of ffmpeg)
    "h264.mp4": ("64x48", .8, X264 + " -movflags +faststart"),
    "open.mp4": ("64x48", .8, X264 + " -x264-params open-gop=1"),
    "strict.mp4": ("64x48", 1.6, "-c:v libx264 -preset slow -crf 34 -g 9 -pix_fmt yuv420p"
                   " -x264-params open-gop=1:bframes=3:b-adapt=0:scenecut=0:b-pyramid=strict"),
    "refresh.mp4": ("64x48", .8, X264 + " -x264-params intra-refresh=1:keyint=8"),
    "fragments.mp4": ("64x48", .8, X264 + " -movflags frag_keyframe+empty_moov"),
    "odd.mkv": ("50x38", .4, "-c:v libx264 -crf 30 -vf format=yuv444p,crop=49:37:0:0 -pix_fmt yuv444p"),
    "full709.mp4": ("64x48", .2, X264 + " -vf scale=out_range=full:out_color_matrix=bt709 -color_range pc -colorspace bt709"),
    "variable.mkv": ("64x48", .8, X264 + " -vf select='not(mod(n,3))+gt(n,11)' -vsync vfr"),
    "h264.avi": ("64x48", .6, X264 + " -bf 2"),
    "h264.ts": ("64x48", .6, X264),
    "interlaced.ts": ("64x48", .4, X264 + " -flags +ilme+ildct -x264-params interlaced=1"),
    "hevc.mp4": ("64x48", .8, "-c:v libx265 -crf 32 -x265-params log-level=none:keyint=7:open-gop=1:bframes=4"
                 " -pix_fmt yuv420p -tag:v hvc1"),
    "hevc10.mkv": ("64x48", .4, "-c:v libx265 -crf 32 -x265-params log-level=none:keyint=7 -pix_fmt yuv420p10le"),
    "vp8.webm": ("64x48", .8, "-c:v libvpx -g 8 -b:v 50k -auto-alt-ref 1 -lag-in-frames 10"),
    "vp9.webm": ("64x48", .8, "-vf crop=63:47:0:0:exact=1 -c:v libvpx-vp9 -g 8 -b:v 50k"),
    "av1.mp4": ("64x48", .6, "-c:v libaom-av1 -cpu-used 8 -g 8 -b:v 50k"),
    "mpeg4.avi": ("64x48", .6, "-c:v mpeg4 -bf 2 -g 8 -q:v 12"),
    "still.avi": ("64x48", .6, "-vf lutyuv=128:128:128 -c:v mpeg4 -bf 2 -g 8 -q:v 31"),
    "wide.mp4": ("1600x1600", .08, "-vf lutyuv=128:128:128 " + X264),
    "packed.avi": ("64x48", .6, "-c:v libxvid -bf 2 -g 8 -q:v 12"),
    "mpeg2.ts": ("64x48", .4, "-c:v mpeg2video -bf 2 -g 8 -q:v 12"),
    "mjpeg.avi": ("64x48", .2, "-c:v mjpeg -q:v 16"),
    "theora.ogg": ("64x48", .4, "-c:v libtheora -q:v 3 -g 8"),
}
AGAIN = {  # of another clip, whose packets stay
    "turned.mp4": ("h264.mp4", "-c copy -metadata:s:v rotate=90"),
    "edited.mp4": ("h264.mp4", "-c copy -ss 0.2"),
    "encrypted.mp4": ("h264.mp4", "-c copy -encryption_scheme cenc-aes-ctr -encryption_key 00112233445566778899aabbccddeeff"
                      " -encryption_kid 00112233445566778899aabbccddeeff"),
}
CUT = {"cut.mp4": .9, "cut.mkv": .9}  # strict.mp4's packets from that second on, so from within an open GOP
REFUSED = {"encrypted.mp4", "large.mkv", "sound.mp4", "sizes.ts", "wide.mp4"}


def ffmpeg(*arguments):
    command = ["ffmpeg", "-v", "error", "-nostdin", "-y", "-threads", "1", *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


def large():
    """Matroska with three packets of a megabyte each, which zlib made small."""
    def element(name, *parts):
        return bytes.fromhex(name) + ((1 << 56) + sum(map(len, parts))).to_bytes(8, "big") + b"".join(parts)

    zlib_is_used = element("6D80", element("6240", element("5034", element("4254", b"\0"))))
    sizes = element("E0", element("B0", b"\x40"), element("BA", b"\x40"))
    track = element("AE", element("D7", b"\1"), element("73C5", b"\1"), element("83", b"\1"), element("86", b"V_MJPEG"), sizes,
                    zlib_is_used)
    packet = zlib.compress(bytes(1 << 20), 9)
    blocks = [element("A3", b"\x81", n.to_bytes(2, "big"), b"\x80", packet) for n in range(3)]
    return (element("1A45DFA3", element("4282", b"matroska"), element("4287", b"\4"), element("4285", b"\2")) +
            element("18538067", element("1654AE6B", track), element("1F43B675", element("E7", b"\0"), *blocks)))


def make(folder):
    exact = ["-fflags", "+bitexact", "-flags:v", "+bitexact", "-map_metadata", "-1"]
    for name, (size, seconds, arguments) in CLIPS.items():
        source = [part.replace("%s", size, 1).replace("%s", str(seconds)) for part in SOURCE]
        ffmpeg(*source, *arguments.split(), *exact, folder / name)
    for name, (other, arguments) in AGAIN.items():
        ffmpeg("-i", folder / other, *arguments.split(), "-fflags", "+bitexact", folder / name)
    for name, second in CUT.items():
        ffmpeg("-ss", second, "-i", folder / "strict.mp4", "-c", "copy", "-fflags", "+bitexact", folder / name)
    ffmpeg("-f", "lavfi", "-i", "sine=duration=0.1", "-c:a", "aac", *exact, folder / "sound.mp4")
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=48x64:rate=25:duration=0.1", *X264.split(), *exact, folder / "other.ts")
    (folder / "sizes.ts").write_bytes((folder / "h264.ts").read_bytes() + (folder / "other.ts").read_bytes())
    (folder / "other.ts").unlink()
    (folder / "large.mkv").write_bytes(large())


def rgb(numpy, planes, width, height, depth, right, below, full, matrix):
    y, u, v = (p.astype(numpy.int64) for p in planes)
    u, v = (p.repeat(1 + below, 0).repeat(1 + right, 1)[:height, :width] for p in (u, v))
    red_v, blue_u, green_u, green_v = matrix
    if full:
        red_v, blue_u, green_u, green_v = ((f * 224 + 127) // 255 for f in matrix)
    red_v, blue_u, green_u, green_v = ((f + 4) // 8 for f in (red_v, blue_u, green_u, green_v))
    more = depth - 8
    y = (y - (0 if full else 16 << more)) * (8192 if full else 9539)
    u, v = u - (128 << more), v - (128 << more)
    colours = [y + red_v * v, y - green_u * u - green_v * v, y + blue_u * u]
    return numpy.stack([((c + (4096 << more)) >> (13 + more)).clip(0, 255) for c in colours], 2).astype(numpy.uint8)


def golden(folder):
    import numpy

    for path in sorted(folder.iterdir()):
        if path.name in REFUSED:
            continue
        probe = ["ffprobe", "-v", "error", "-select_streams", "v", "-of", "json", "-show_streams", "-show_frames",
                 "-show_entries", "frame=best_effort_timestamp,pts", path]
        said = json.loads(subprocess.run(probe, check=True, stdout=subprocess.PIPE).stdout)
        stream = said["streams"][0]
        kind, width, height = stream["pix_fmt"], stream["width"], stream["height"]
        depth = 10 if "10" in kind else 8
        right, below = {"420": (1, 1), "422": (1, 0), "444": (0, 0)}[kind.replace("yuvj", "yuv")[3:6]]
        full = kind.startswith("yuvj") or stream.get("color_range") == "pc"
        matrix = (117489, 138438, 13975, 34925) if stream.get("color_space") == "bt709" else (104597, 132201, 25675, 53279)
        raw = ffmpeg("-noautorotate", "-i", path, "-vsync", "passthrough", "-f", "rawvideo", "-pix_fmt", kind, "-")
        shown = ffmpeg("-i", path, "-vsync", "passthrough", "-f", "rawvideo", "-pix_fmt", "rgb24", "-")
        data = numpy.frombuffer(raw, numpy.uint16 if depth > 8 else numpy.uint8)
        small = ((height + below) >> below, (width + right) >> right)
        sizes = [(height, width), small, small]
        each = sum(h * w for h, w in sizes)
        frames, sums = len(data) // each, []
        for n in range(frames):
            planes, at = [], n * each
            for h, w in sizes:
                planes.append(data[at:at + h * w].reshape(h, w))
                at += h * w
            picture = rgb(numpy, planes, width, height, depth, right, below, full, matrix)
            if path.name == "turned.mp4":
                picture = numpy.rot90(picture)
            theirs = numpy.frombuffer(shown[n * picture.size:(n + 1) * picture.size], numpy.uint8).astype(int)
            if depth == 8 and width % 2 == 0:  # of odd ones it makes colours in another way
                apart = abs(theirs.reshape(picture.shape) - picture)
                assert apart.max() <= 3, (path.name, n, apart.max())
            sums.append(zlib.crc32(numpy.ascontiguousarray(picture).tobytes()))
        top, bottom = map(int, stream["time_base"].split("/"))
        # Of a decoder's last frames ffprobe may not know: as far behind as the one before.
        times = [f.get("best_effort_timestamp") for f in said["frames"]][:frames]
        for n, time in enumerate(times):
            times[n] = 2 * times[n - 1] - times[n - 2] if time is None else time
        times = [round((t - times[0]) * 1000000 * top / bottom) for t in times]
        print(path.name, picture.shape[1], picture.shape[0], frames, ",".join(map(str, times)),
              ",".join("%08x" % s for s in sums), sep="\t")


if __name__ == "__main__":
    (golden if "--golden" in sys.argv else make)(pathlib.Path(sys.argv[1]))
