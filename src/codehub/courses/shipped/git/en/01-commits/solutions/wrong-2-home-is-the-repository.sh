# git init was typed in the home folder.
git config --global user.name "Jiwoo Kim"
git config --global user.email "jiwoo@example.com"
git init -q -b main
cd git-01/trip
git add plan.txt
git commit -q -m "Plan the first two days"
