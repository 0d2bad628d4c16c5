# "git branch"로 만들기만 하고 main에 그대로 있어서 main에 커밋했습니다.
git config --global user.name "김지우"
git config --global user.email "jiwoo@example.com"
sh git-03/setup.sh
cd git-03/concert
git merge fix-date
git branch tickets
echo "어린이 2000원, 어른 5000원" > tickets.txt
git add tickets.txt
git commit -q -m "입장권 가격 추가"
echo "music@school.example" > contact.txt
git add contact.txt
git commit -q -m "연락처 추가"
git merge --no-edit tickets
git branch -d fix-date tickets
