"""Train a model, attack it, look at what is left; on the embedded dataset, in seconds."""

import grb

dataset = grb.load_dataset("synth-tiny")
model = grb.train("gcn", dataset, seed=0, epochs=100)
result = grb.run_attack("pgd", model, dataset, iterations=20)
print("clean   ", grb.evaluate(model, dataset))
print("attacked", grb.evaluate(model, dataset, result))
print("used    ", result.budget, f"{result.seconds:.2f} s")
