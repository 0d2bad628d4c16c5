set -e
git config --global user.name "Jiwoo Kim"
git config --global user.email "jiwoo@example.com"
cd git-01/trip
git init -q -b main
git add plan.txt
git commit -q -m "Plan the first two days"
git add packing.txt
git commit -q -m "List what to pack"
sed 's/Day 3: ???/Day 3: boat to the island/' plan.txt > plan.new
mv plan.new plan.txt
git add plan.txt
git commit -q -m "Go to the island on day 3"
