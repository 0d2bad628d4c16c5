# Git does not know who commits, so the commit was refused; the learner did not read the answer.
git config --global user.useConfigOnly true
cd git-01/trip
git init -q -b main
git add plan.txt
git commit -q -m "Plan the first two days" || true
