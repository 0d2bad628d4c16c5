# "git add ." takes both files into the first commit.
git config --global user.name "Jiwoo Kim"
git config --global user.email "jiwoo@example.com"
cd git-01/trip
git init -q -b main
git add .
git commit -q -m "changes"
sed 's/Day 3: ???/Day 3: boat/' plan.txt > plan.new
mv plan.new plan.txt
git add .
git commit -q -m "changes"
