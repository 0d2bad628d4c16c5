# The file is resolved and added, but the commit that concludes the merge is missing.
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
printf 'Monday: rice\nTuesday: curry\nFriday: pumpkin soup with bread\n' > lunch.txt
git add lunch.txt
git push || true
