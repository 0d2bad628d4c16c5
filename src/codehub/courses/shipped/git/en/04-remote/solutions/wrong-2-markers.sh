# Adds the file with the markers in it, and pushes that.
git config --global user.name "Jiwoo Kim"
git config --global user.email "jiwoo@example.com"
sh git-04/setup.sh
cd git-04
git clone -q server.git mine
cd mine
printf 'Monday: rice\nTuesday: curry\nFriday: soup with bread\n' > lunch.txt
git add lunch.txt
git commit -q -m "Add bread to the soup"
sh ../mina.sh
git fetch -q
git merge origin/main || true
git add lunch.txt
git commit -q --no-edit
git push -q
