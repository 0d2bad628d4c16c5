# "git add ."으로 모두 커밋해서 사고도 비밀번호도 이력에 남았습니다.
git config --global user.name "김지우"
git config --global user.email "jiwoo@example.com"
sh git-02/setup.sh
cd git-02/shop
git add .
git commit -q -m "정리"
