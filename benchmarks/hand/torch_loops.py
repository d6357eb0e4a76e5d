"""PyTorch, as its tutorials write a training loop."""

import torch
import torch.nn.functional as F
from torch import nn


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.stack = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))

    def forward(self, x):
        return self.stack(x)


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 32, 5), nn.Conv2d(32, 64, 5)
        self.pool = nn.MaxPool2d(2)
        self.dense1, self.dense2 = nn.Linear(1024, 500), nn.Linear(500, 10)

    def forward(self, x):
        x = self.pool(F.relu(self.conv1(x)))
        x = self.pool(F.relu(self.conv2(x)))
        x = torch.flatten(x, 1)
        return self.dense2(F.relu(self.dense1(x)))


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(16, 64, batch_first=True)
        self.dense = nn.Linear(64, 10)

    def forward(self, x):
        states, _ = self.lstm(x)
        return self.dense(states[:, -1])


def set_weights(kind, model, w):
    """The same starting weights as the adapter's, in PyTorch's layouts."""
    t = {name: torch.tensor(values) for name, values in w.items()}
    dense = [m for m in model.modules() if isinstance(m, nn.Linear)]
    with torch.no_grad():
        for i, layer in enumerate(dense, 1):
            kernel = t["dense_%d/kernel" % i]
            if kind == "cnn" and i == 1:
                kernel = kernel.reshape(4, 4, 64, 500).permute(2, 0, 1, 3).reshape(1024, 500)
            layer.weight.copy_(kernel.T)
            layer.bias.copy_(t["dense_%d/bias" % i])
        for i, layer in enumerate((m for m in model.modules() if isinstance(m, nn.Conv2d)), 1):
            layer.weight.copy_(t["conv2d_%d/kernel" % i].permute(3, 2, 0, 1))
            layer.bias.copy_(t["conv2d_%d/bias" % i])
        if kind == "lstm":
            model.lstm.weight_ih_l0.copy_(t["lstm_1/kernel"].T)
            model.lstm.weight_hh_l0.copy_(t["lstm_1/recurrent"].T)
            model.lstm.bias_ih_l0.copy_(t["lstm_1/bias"])
            model.lstm.bias_hh_l0.zero_()


def make(kind, weights, batches, rate, momentum, loop, device):
    model = {"mlp": Mlp, "cnn": Cnn, "lstm": Lstm}[kind]()
    set_weights(kind, model, weights)
    model.to(device)
    optimiser = torch.optim.SGD(model.parameters(), lr=rate, momentum=momentum)
    loss_of = nn.CrossEntropyLoss()
    data = []
    for x, y in batches:
        x = torch.tensor(x)
        x = x.permute(0, 3, 1, 2).contiguous() if kind == "cnn" else x
        data.append((x.to(device), torch.tensor(y).long().to(device)))

    def wait():
        if device != "cpu":
            torch.cuda.synchronize()

    def train(count):
        model.train()
        for i in range(count):
            x, y = data[i % len(data)]
            optimiser.zero_grad()
            loss = loss_of(model(x), y)
            loss.backward()
            optimiser.step()
        wait()

    def predict(count):
        model.eval()
        with torch.inference_mode():
            for i in range(count):
                output = torch.softmax(model(data[i % len(data)][0]), 1)
        wait()
        return output.cpu().numpy()

    return train, predict
