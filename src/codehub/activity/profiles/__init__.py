"""What an IDE's traffic means: is a person, or a program of theirs, at work? One small pure classifier per kind of IDE.

Chosen by the template, asked by `recorder`. Where a profile does not understand what it sees, it counts it: putting
a person's work to sleep is the worse mistake. Each was made from recordings of the real program (`tests/activity`).
"""

from codehub.activity.profiles.base import Profile
from codehub.activity.profiles.jupyter import Jupyter
from codehub.activity.profiles.plain import Plain
from codehub.activity.profiles.vscode import VSCode
from codehub.templates.model import ActivityProfile

PROFILES: dict[ActivityProfile, Profile] = {
    ActivityProfile.PLAIN: Plain(),
    ActivityProfile.JUPYTER: Jupyter(),
    ActivityProfile.VSCODE: VSCode(),
}
