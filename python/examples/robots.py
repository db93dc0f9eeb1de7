#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Behaviour cloning: from a camera's frame and the robot's state, the next actions, of a data set in LeRobot's format.

What changes where LeRobot's data set was:

    -dataset = LeRobotDataset("lerobot/pusht", delta_timestamps={"action": [n / 10 for n in range(8)]})
    -loader = DataLoader(dataset, batch_size=64, shuffle=True, num_workers=8, drop_last=True)
    +data = oa.from_lerobot("lerobot/pusht", delta_timestamps={"action": [n / 10 for n in range(8)]})
    +loader = oa.Loader(data, batch_size=64, drop_last=True)
     for batch in loader: batch["observation.image"], batch["action"], batch["action_is_pad"]

Frames come as bytes, [H, W, 3], and become floats where the model is; dtype="float32" has LeRobot's tensors. Jobs that train on one data set
decode its videos once for all.
"""
import argparse

import torch
from torch import nn

import oneaccess as oa

STATE, ACTION = "observation.state", "action"


class Policy(nn.Module):
    def __init__(self, states, actions, ahead):
        super().__init__()
        self.see = nn.Sequential(nn.Conv2d(3, 16, 5, 2), nn.ReLU(), nn.Conv2d(16, 32, 5, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten())
        self.act = nn.Sequential(nn.Linear(32 * 16 + states, 128), nn.ReLU(), nn.Linear(128, ahead * actions))
        self.shape = (ahead, actions)

    def forward(self, frames, states):
        seen = self.see(frames.permute(0, 3, 1, 2).float() / 255)
        return self.act(torch.cat([seen, states], 1)).unflatten(1, self.shape)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="a folder in LeRobot's format, or its name on the Hub")
    parser.add_argument("--camera", help="default: the first one")
    parser.add_argument("--ahead", type=int, default=8, help="actions that are learned of each frame")
    parser.add_argument("--held-out", type=int, default=1, help="episodes, the last ones, for evaluation")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=64)
    options = parser.parse_args()
    torch.manual_seed(1)

    whole = oa.from_lerobot(options.data)
    camera = options.camera or whole.cameras[0]
    numbers = [episode["episode_index"] for episode in whole.episodes]
    windows = {ACTION: [n / whole.fps for n in range(options.ahead)]}
    train, held_out = (oa.from_lerobot(options.data, [camera, STATE, ACTION], delta_timestamps=windows, episodes=some)
                       for some in (numbers[:-options.held_out], numbers[-options.held_out:]))
    loader = oa.Loader(train, batch_size=options.batch_size, drop_last=True)
    evaluation = oa.Loader(held_out, batch_size=options.batch_size)

    scales = {name: [torch.tensor(train.stats[name][kind], dtype=torch.float32) for kind in ("mean", "std")] for name in (STATE, ACTION)}
    policy = Policy(*(len(scales[name][0]) for name in (STATE, ACTION)), options.ahead)
    optimizer = torch.optim.Adam(policy.parameters(), 0.001)

    def normal(batch, name):
        mean, std = scales[name]
        return (batch[name] - mean) / (std + 1e-6)

    def loss_of(batch):
        wrong = (policy(batch[camera], normal(batch, STATE)) - normal(batch, ACTION)).abs().mean(2)
        return wrong[~batch[f"{ACTION}_is_pad"].bool()].mean()

    for epoch in range(options.epochs):
        samples, loss_sum = 0, 0.0
        for batch in loader:
            loss = loss_of(batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            samples += len(batch[ACTION])
            loss_sum += loss.item() * len(batch[ACTION])
        with torch.no_grad():
            losses = [loss_of(batch).item() for batch in evaluation]
        print(f"epoch {epoch + 1}: {samples} samples, held out {sum(losses) / len(losses):.4f}, loss {loss_sum / samples:.4f}", flush=True)


if __name__ == "__main__":
    main()
