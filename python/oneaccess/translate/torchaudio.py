# SPDX-License-Identifier: Apache-2.0
"""A pipeline of torchaudio's transforms, or a feature extractor for sounds of transformers, translated; or what of it cannot be, and why.

The objects are read, not run. Neither library is imported.
"""

import math

from .. import transforms as oa
from ..errors import TransformError


def _values(transform, *names):
    """Attributes that have the names of the parameters."""
    return {name: getattr(transform, name) for name in names}


def _of(function, *names):
    return lambda transform: function(**_values(transform, *names))


def _same(transform, **wanted):
    """What is there in one way only."""
    for name, value in wanted.items():
        found = getattr(transform, name, value)
        if found != value:
            raise TransformError(f"{name} is {found!r}, and only {value!r} is there")


def _stft(spectrogram):
    """The parameters of a Spectrogram."""
    _same(spectrogram, pad=0, normalized=False, pad_mode="reflect", onesided=True)
    if spectrogram.power not in (1, 2):
        raise TransformError(f"power is {spectrogram.power!r}: give 2, or 1 for magnitudes")
    window = [float(value) for value in spectrogram.window]
    if any(abs(value - (0.5 - 0.5 * math.cos(2 * math.pi * at / len(window)))) > 1e-6 for at, value in enumerate(window)):
        raise TransformError("its window is not torch.hann_window(): leave window_fn out")
    return _values(spectrogram, "n_fft", "win_length", "hop_length", "power", "center")


def _bands(scale):
    """The parameters of a MelScale."""
    return _values(scale, "n_mels", "f_min", "f_max", "norm", "mel_scale")


def _mel(transform):
    return oa.MelSpectrogram(**_stft(transform.spectrogram), **_bands(transform.mel_scale))


def _mfcc(transform):
    mel = transform.MelSpectrogram
    return oa.MFCC(transform.n_mfcc, transform.dct_type, transform.norm, transform.log_mels or None,
                   {**_stft(mel.spectrogram), **_bands(mel.mel_scale)})


def _spec_augment(transform):
    if not transform.zero_masking:
        raise TransformError("it masks with the spectrogram's mean: give zero_masking=True, or normalize to the mean 0 before")
    return ([oa.TimeMasking(transform.time_mask_param, transform.p)] * transform.n_time_masks
            + _bands_masked(transform) * transform.n_freq_masks)


def _bands_masked(transform):
    if transform.p != 1:
        raise TransformError("its p is also one of the bands' masks: give TimeMasking(p=) and FrequencyMasking(), or p=1")
    return [oa.FrequencyMasking(transform.freq_mask_param)]


_KNOWN = {
    "Vol": _of(oa.Vol, "gain", "gain_type"),
    "Fade": _of(oa.Fade, "fade_in_len", "fade_out_len", "fade_shape"),
    "Preemphasis": _of(oa.Preemphasis, "coeff"),
    "MuLawEncoding": _of(oa.MuLawEncoding, "quantization_channels"),
    "Spectrogram": lambda transform: oa.Spectrogram(**_stft(transform)),
    "MelSpectrogram": _mel,
    "MFCC": _mfcc,
    "AmplitudeToDB": _of(oa.AmplitudeToDB, "stype", "top_db"),
    "TimeMasking": lambda transform: oa.TimeMasking(transform.mask_param, transform.p),
    "FrequencyMasking": lambda transform: oa.FrequencyMasking(transform.mask_param),
    "SpecAugment": _spec_augment,
    "Identity": lambda transform: [],
}
_WHY = {
    "AddNoise": "it is given its noise with each waveform: oneaccess.transforms.AddNoise(snr) has white noise",
    "Deemphasis": "it feeds back what comes out; there is LowPass()",
    "InverseMelScale": "it searches for what fits",
    "GriffinLim": "it searches for what fits",
    "Vad": "it makes sounds of other lengths: do it once, and give the data set of its results",
    "LFCC": "there are MFCC() and MelSpectrogram()",
}


class _Reading:
    """What is known of a list of transforms so far."""

    def __init__(self, rate):
        self.rate, self.ops, self.speeds = rate, [], None

    def at_rate(self, rate, name):
        if self.rate not in (None, rate):
            raise TransformError(f"{name} is {rate}, where sounds have the rate {self.rate}: give both the same")
        self.rate = rate

    def take(self, transform):
        name = type(transform).__name__
        if name == "Resample":
            self.resample(transform)
        elif name in ("Speed", "SpeedPerturbation"):
            self.speed(transform)
        elif name == "MelScale":
            self.mel_scale(transform)
        elif name in _KNOWN:
            if hasattr(transform, "sample_rate"):
                self.at_rate(transform.sample_rate, "sample_rate")
            made = _KNOWN[name](transform)
            self.ops += made if isinstance(made, list) else made.ops if isinstance(made, oa.Pipeline) else [made]
        else:
            raise TransformError(_WHY.get(name, "there is no op like it"))

    def resample(self, transform):
        if self.ops or self.speeds:
            raise TransformError("sounds have one rate from the beginning: put it first")
        self.rate = transform.new_freq

    def speed(self, transform):
        if self.ops or self.speeds:
            raise TransformError("sounds are decoded at a speed: put it first, behind Resample, once")
        speeders = list(getattr(transform, "speeders", [transform]))
        self.at_rate(speeders[0].orig_freq, "orig_freq")
        self.speeds = [speeder.factor for speeder in speeders]

    def mel_scale(self, transform):
        before = self.ops.pop() if self.ops else None
        if before is None or before.op != "spectrogram":
            raise TransformError("it stands behind a Spectrogram, or there is MelSpectrogram")
        self.at_rate(transform.sample_rate, "sample_rate")
        self.ops.append(oa.MelSpectrogram(**before.parameters, **_bands(transform)))


# ---- transformers ----


def _whisper(extractor, frames, crop):
    _same(extractor, dither=0.0, padding_value=0.0)
    rate = extractor.sampling_rate
    return oa.Compose([
        oa.audio(rate, frames=frames or extractor.n_samples, crop=crop or "begin"),
        oa.MelSpectrogram(extractor.n_fft, hop_length=extractor.hop_length, n_mels=extractor.feature_size, norm="slaney",
                          f_max=None if rate == 16000 else 8000.0, mel_scale="slaney", log="whisper")])


def _wav2vec2(extractor, frames, crop):
    _same(extractor, feature_size=1, padding_value=0.0)
    if frames is None:
        raise TransformError("it takes sounds of any length: give seconds or frames, to which they are cut and padded")
    return oa.Compose([oa.audio(extractor.sampling_rate, frames=frames, crop=crop), *([oa.Standardize()] if extractor.do_normalize else [])])


_EXTRACTORS = {"WhisperFeatureExtractor": _whisper, "Wav2Vec2FeatureExtractor": _wav2vec2}


def _extracted(extractor, seconds, frames, crop):
    name = type(extractor).__name__
    if name not in _EXTRACTORS:
        raise TransformError(f"{name} has no counterpart; there are {', '.join(_EXTRACTORS)}: give Loader the waveforms of oneaccess.audio(),"
                             " and call it with the finished batches")
    frames = round(seconds * extractor.sampling_rate) if seconds is not None else frames
    try:
        return _EXTRACTORS[name](extractor, frames, crop)
    except TransformError as why:
        raise TransformError(f"{name} cannot be translated: {why}") from None


# ---- both ----


def _flatten(transform, place):
    """(where, transform) one after another."""
    inner = transform if isinstance(transform, (list, tuple)) or type(transform).__name__ == "Sequential" else getattr(transform, "transforms", None)
    if inner is None:
        yield place, transform
    for number, each in enumerate(inner or ()):
        yield from _flatten(each, f"{place}[{number}]")


def from_torchaudio(transform, seconds: float | None = None, *, frames: int | None = None, sample_rate: int | None = None,
                    channels: int | None = None, crop: str | None = None) -> oa.Pipeline:
    """Translates torchaudio's transforms, or transformers' feature extractor for sounds, into a Pipeline for Loader.

        augment = torch.nn.Sequential(T.Resample(44100, 16000), T.MelSpectrogram(16000, n_mels=80), T.AmplitudeToDB(), T.TimeMasking(40))
        loader = oa.Loader("/data/speech", oa.from_torchaudio(augment, seconds=4.0), batch_size=64)
        oa.from_torchaudio(AutoFeatureExtractor.from_pretrained("openai/whisper-small"))

    transform: one of torchaudio.transforms, a torch.nn.Sequential, Compose or list of them; or a WhisperFeatureExtractor,
        Wav2Vec2FeatureExtractor, or a processor that has one. It is read, not run.
    seconds, or frames, channels, crop: as of audio(). Whisper's extractor knows the length itself.
    sample_rate: of the sounds that the transforms get; by default what they say: Resample, which must stand first, MelSpectrogram,
        MFCC, SpeedPerturbation.

    TransformError names the first transform that has no counterpart, and what to do.

    Files are resampled by libsoxr, whose numbers differ a little from those of Resample and SpeedPerturbation. Random transforms have
    the same distribution, with draws of accessd. What works on waveforms works on the frames of a sound, and zeros are put behind it
    afterwards: as where each sound is transformed alone and then padded. So Wav2Vec2FeatureExtractor does it for a sound alone, and with
    return_attention_mask=True; without, it counts a batch's zeros into the mean.
    """
    if seconds is not None and frames is not None:
        raise TransformError("from_torchaudio(): give seconds or frames")
    transform = getattr(transform, "feature_extractor", transform)
    if type(transform).__module__.split(".")[0] == "transformers":
        return _extracted(transform, seconds, frames, crop)
    reading = _Reading(sample_rate)
    for place, each in _flatten(transform, "transforms"):
        try:
            if type(each).__module__.split(".")[0] not in ("torchaudio", "torch"):
                raise TransformError("it is Python of your own")
            reading.take(each)
        except TransformError as why:
            raise TransformError(f"{place}, {type(each).__name__}, cannot be translated: {why}. Leave it out here and do it to the finished"
                                 " batches, or keep all of it and give Loader the data set by oneaccess.wrap()") from None
    if reading.rate is None:
        raise TransformError("no transform says the sounds' rate: give sample_rate")
    return oa.Compose([oa.audio(reading.rate, seconds, frames=frames, channels=channels, crop=crop, speeds=reading.speeds), *reading.ops])
