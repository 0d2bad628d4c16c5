# 브랜치를 main으로 병합하지 않고 main을 브랜치로 병합했습니다.
git config --global user.name "김지우"
git config --global user.email "jiwoo@example.com"
sh git-03/setup.sh
cd git-03/concert
git switch -q fix-date
git merge main
git switch -q main
git switch -q -c tickets
echo "어린이 2000원, 어른 5000원" > tickets.txt
git add tickets.txt
git commit -q -m "입장권 가격 추가"
git switch -q main
echo "music@school.example" > contact.txt
git add contact.txt
git commit -q -m "연락처 추가"
git switch -q tickets
git merge --no-edit main
