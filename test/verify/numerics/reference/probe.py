"""What scikit-learn makes of a probe's data set: fit, standardisation and metrics by its own functions."""

import json

import numpy
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, brier_score_loss, roc_auc_score
from sklearn.preprocessing import StandardScaler

import inputs

given = inputs.read()
labels = given["labels"]
train = given["train"] == 1
features = given["features"].reshape(len(train), -1).astype(numpy.float64)

scaler = StandardScaler().fit(features[train])
std = numpy.maximum(numpy.sqrt(scaler.var_), 0.01)
standardised = (features - scaler.mean_) / std

# With 1e-10 scikit-learn stops where its line search finds nothing better, which is far below what is compared.
model = LogisticRegression(C=given["c"], solver="lbfgs", tol=given["tolerance"], max_iter=100000)
model.fit(standardised[train], labels[train])

scores = model.predict_proba(standardised)[:, 1]
held_out = ~train
by_group = {}
if "groups" in given:
    names = numpy.unique(given["groups"][held_out])
    means = numpy.array([scores[given["groups"] == name].mean() for name in names])
    truth = numpy.array([labels[given["groups"] == name][0] for name in names])
    by_group = {
        "accuracy": accuracy_score(truth, means > 0.5),
        "auc": roc_auc_score(truth, means),
        "brier": brier_score_loss(truth, means),
    }
majority = DummyClassifier(strategy="most_frequent").fit(standardised[train], labels[train])
print(
    json.dumps(
        {
            "weight": model.coef_[0].tolist(),
            "bias": float(model.intercept_[0]),
            "scores": scores.tolist(),
            "iterations": int(model.n_iter_[0]),
            "accuracy": accuracy_score(labels[held_out], model.predict(standardised[held_out])),
            "auc": roc_auc_score(labels[held_out], model.decision_function(standardised[held_out])),
            "brier": brier_score_loss(labels[held_out], scores[held_out]),
            "by_group": by_group,
            "majority_accuracy": accuracy_score(labels[held_out], majority.predict(standardised[held_out])),
        }
    )
)
