set -e
git config --global user.name "김지우"
git config --global user.email "jiwoo@example.com"
sh git-04/setup.sh
cd git-04
git clone -q server.git mine
cd mine
printf '월요일: 비빔밥\n화요일: 카레\n금요일: 국수와 김치\n' > lunch.txt
git add lunch.txt
git commit -q -m "김치 추가"
sh ../mina.sh
git push || true
git fetch -q
git merge origin/main || true
printf '월요일: 비빔밥\n화요일: 카레\n금요일: 비빔국수와 김치\n' > lunch.txt
git add lunch.txt
git commit -q --no-edit
git push -q
