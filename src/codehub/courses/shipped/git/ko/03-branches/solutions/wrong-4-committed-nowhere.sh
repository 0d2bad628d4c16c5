# detached HEAD에서 커밋했고, fix-date는 병합하기 전에 지웠습니다.
git config --global user.name "김지우"
git config --global user.email "jiwoo@example.com"
sh git-03/setup.sh
cd git-03/concert
git branch -D fix-date
git switch -q --detach main
echo "어린이 2000원, 어른 5000원" > tickets.txt
git add tickets.txt
git commit -q -m "입장권 가격 추가"
