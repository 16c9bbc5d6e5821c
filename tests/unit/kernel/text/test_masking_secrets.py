"""What masking must hide: secrets under telling keys, in every notation of text, and in well-known formats."""

from __future__ import annotations

import json

import pytest

from toolgate.kernel.text.masking import MASK, Masker

# Made up: no vendor's format, built so that no scanner takes it for a real one.
CANARY = "zK7qP" + "wX2vB9" + "tR4m"
LONG = "aB3dE5gH7jK9mN1pQ2sT4vW6yZ8" * 3
HEX = "0a1b2c3d4e5f6789" * 4

KEYS = """
password Password PASSWORD db_password dbPassword DbPassword DB_PASSWORD user.password passwd pwd passphrase
pass db_pass smtpPass PGPASSWORD MYSQL_PWD secret secrets client_secret clientSecret client-secret token
access_token accessToken refresh_token id_token csrf_token x-csrf-token authToken _authToken AUTH_TOKEN
authtoken api_key apiKey apikey APIKEY APIKey X-Api-Key x_api_key API_KEY openai_api_key access_key
secret_access_key AWS_SECRET_ACCESS_KEY private_key privateKey signing_key encryption_key ssh_key credential
credentials aws_credentials auth authorization Authorization Proxy-Authorization proxy_authorization bearer
bearer_token cookie Cookie Set-Cookie session_token sessionid jwt otp totp_secret cvv cvc connection_string
connectionString dsn webhook_secret pem passcode account_key AccountKey SharedAccessKey master_key password1
password_2 new_password oldPassword confirm_password password_hash basic_auth auth_header api_token bot_token
deploy_token secret_key SECRET_KEY app_secret signing_secret jwt_secret sas_token pw db_pw user_credentials
passwords api_keys recovery_code secret_value token_secret auth_code password_confirmation
Ocp-Apim-Subscription-Key hmac_key license_key seed_phrase mnemonic vault_token secret_id
spring.datasource.password DATABASE_PASSWORD rootPassword adminPass wifi_password userPasswd GITHUB_TOKEN
NPM_TOKEN HF_TOKEN slackToken stripeSecretKey contraseña Passwort secretKey secretString PlaintextPassword
MasterUserPassword ClientSecret AccessToken private-key PRIVATE_KEY sshPrivateKey htpasswd userPassword passWord
pass_word PassPhrase API-KEY Api-Token x-amz-security-token xsrf anthropicApiKey OPENAI_KEY AWS_SECRET
proxy_password vnc_passwd TWILIO_AUTH_TOKEN cf_api_token SONAR_TOKEN discordToken authenticationToken
authorizationToken bearerToken signingKey encryptionKey masterKey storageAccountKey sharedSecret preSharedKey
wpa_psk nonceSecret secret1 token2 my_token_v2 tokenValue rawToken auth0_client_secret oauth2_token oauthToken
oauth_token_secret consumerSecret consumer_key
""".split()

# One text on each line; § stands for the secret.
TEXTS = r"""
user ann, password §, host db
user=ann password § port 5432
log in as user ann and password §
apikey §
api key § is in use
TOKEN=$(gh auth token); Access token: §
pin: 13, otp=§
auth: {enabled: false}; "credentials": {"user": "bob", "value": "§"}
password=§
password=[§ and more
PASSWORD: §
password = §
password: §
export TOKEN="§"
"apiKey": "§"
'password': '§'
{"user": "bob", "password": "§", "x": 1} trailing
request failed body={"token": "§"}
api_key: §
apikey=§&x=1
password="§"
password='§'
password=`§`
const password = "§";
password := "§"
'password' => '§',
os.environ["API_KEY"] = "§"
headers["Authorization"] = "Bearer §"
requests.get(url, auth=("bob", "§"))
Client(api_key="§")
Config(user='x', password='§')
<password>§</password>
<add key="Password" value="§"/>
Server=h;Database=d;User Id=sa;Password=§;
host=h password=§ dbname=d
AccountName=x;AccountKey=§==;EndpointSuffix=core
Endpoint=sb://x/;SharedAccessKeyName=n;SharedAccessKey=§
$env:API_TOKEN = '§'
set PASSWORD=§
ENV API_KEY §
ARG TOKEN=§
docker run -e SECRET=§ img
password is §
The password is '§'.
my password: §
Password for bob is set; password=§.
pwd=§,user=x
API key: §
Access token: §
client secret = §
Connection string: §
{\"password\": \"§\"}
log: "{\"a\": {\"token\": \"§\"}}"
\npassword=§\nuser=x
password%3D§%26user%3Dbob
%7B%22password%22%3A%22§%22%7D
ALTER USER bob WITH PASSWORD '§';
CREATE USER x IDENTIFIED BY '§';
machine h login bob password §
//registry.example.org/:_authToken=§
aws_secret_access_key = §
token: §
secret: §
credentials=§
PASSWORD=§ psql -h db
密码: §
пароль: §
Passwort: §
contraseña=§
if password == "§":
password:   §
pw: §
otp=§
data = {"token": "§"}
.header("X-Api-Key", "§")
setRequestHeader("Authorization", "Bearer §")
jwt_secret = "§"
"credentials": {"user": "bob", "value": "§"}
auth_token=§
sessionid=§
db.password=§
--set db.password=§
spring.datasource.password=§
password=a,§
password=a;§
password=a&§!
password=x)y§
hunter password=§<br>
Authorization: Bearer §
authorization: bearer §
Authorization: Basic §
Authorization: token §
Authorization: §
Authorization: Digest username="b", response="§"
Proxy-Authorization: Basic §
Authorization: AWS4-HMAC-SHA256 Credential=AK/2020/x, Signature=§
X-Api-Key: §
Cookie: a=b; sid=§
Set-Cookie: sid=§; Path=/; HttpOnly
x-auth-token: §
curl -H 'Authorization: Bearer §' https://x
curl -H "X-Api-Key: §"
sent Bearer § to host
X-Vault-Token: §
PRIVATE-TOKEN: §
> authorization: Bearer §
Authorization=Bearer §
https://user:§@host/path
postgresql://u:§@h:5432/db
redis://:§@h:6379/0
https://§§@github.com/x.git
mongodb+srv://u:§@c.mongodb.net/x
amqp://g:§@mq//
https://x/?token=§
https://x/?a=1&api_key=§&b=2
https://x/#access_token=§&t=1
https://b.blob.core.windows.net/c?sv=1&sig=§
https://s3/x?X-Amz-Signature=§&a=b
https://x/?X-Amz-Security-Token=§
postgres://u:p@§@h/db
postgres://u:p/§@h/db
u:§@tcp(h:3306)/db
jdbc:oracle:thin:scott/§@h:1521
jdbc:postgresql://h/db?user=x&password=§
git clone https://x-access-token:§@github.com/a/b
ftp://bob:§@h
{'url': 'https://a:§@h'}
smtp://a%40b.c:§@h:587
https://h/cb?code=1&access_token=§
--password §
--token '§' --x
tool --api-key=§
curl -u bob:§ https://x
mysql -u root -p§ db
docker login -u me -p § reg
sshpass -p § ssh h
redis-cli -h x -a § ping
openssl rsa -passin pass:§
echo § | docker login --password-stdin
mongodump -u a -p §
psql 'password=§'
aws configure set aws_secret_access_key §
kubectl create secret generic s --from-literal=password=§
gpg --batch --passphrase § -d f
wget --http-password=§ x
ldapsearch -D cn=a -w §
sqlcmd -U sa -P §
zip -P § a.zip b
7z x -p§ a.7z
vault login -method=x password=§
az login --username u --password "§"
curl -b 'sid=§' x
npm config set _authToken §
PASSWORD='§'
DATABASE_URL=postgres://app:§@db.internal:5432/app
{"auths":{"ghcr.io":{"auth":"§"}}}
redis-cli -u redis://:§@h:6379
psycopg2.OperationalError: connection to "host=h user=u password=§" failed
curl --header 'Authorization: Bearer §'
curl -H "authorization: Basic §"
http POST x Authorization:'Bearer §'
http x X-Api-Key:§
wget --password=§
wget --header="X-Auth-Token: §"
aws_session_token=§
AZURE_CLIENT_SECRET=§
client_secret=§&grant_type=client_credentials
grant_type=password&username=a&password=§
refresh_token=§
code=x&client_secret=§
{"access_token":"§","token_type":"bearer"}x
id_token: §
Set-Cookie: session=§; HttpOnly
set-cookie: a=§
apikey: "§"
apiKey: '§',
api-key=§
x-api-key:§
private_key = "§"
encryption_key: §
SECRET_KEY_BASE=§
APP_KEY=base64:§
JWT_SECRET=§
STRIPE_SECRET=§
WEBHOOK_SECRET: §
MONGO_URI=mongodb://u:§@h
AMQP_URL=amqps://u:§@h/v
SENTRY_DSN=https://§§@o1.ingest.sentry.io/1
smtp_pass: §
SMTP_PASS=§
mail.password=§
password : §
password	=	§
"password" : "§"
'password':'§'
{password: "§"}
{'password': u'§'}
{\"password\":\"§\"}
\\"password\\": \\"§\\"
password=("§")
setPassword("§")
login(username="bob", password="§")
connect(host, 'bob', password='§')
auth: "bob:§"
auth=('bob', '§')
Authorization": "Bearer §"
-H 'Cookie: sid=§'
--cookie "sid=§"
--header 'X-Secret: §'
token=§;
?auth=§
&key=1&secret=§
#id_token=§
gpg --passphrase=§
export PGPASSWORD=§; psql
PGPASSWORD=§ pg_dump db
MYSQL_PWD=§ mysql
mysql --password=§
mysqldump -uroot -p§ db
mysql -h h -u root -p'§'
helm upgrade x --set postgresql.auth.password=§
kubectl create secret docker-registry r --docker-password=§
terraform apply -var 'db_password=§'
terraform apply -var="token=§"
ansible-playbook -e ansible_ssh_pass=§
docker build --build-arg NPM_TOKEN=§
git clone https://oauth2:§@gitlab.com/a/b
pip install --index-url https://u:§@pypi.x/simple
npm set //registry.example.org/:_authToken=§
_auth=§
_password=§
<Password>§</Password>
<db:password>§</db:password>
<property name="password" value="§"/>
<user name="bob" password="§"/>
<apiKey>§</apiKey>
<input name="csrf_token" value="§">
<input type="hidden" name="token" value="§"/>
&quot;password&quot;:&quot;§&quot;
password%22%3A%22§%22
token%3D§
Passwort=§
mot de passe: §
senha: §
contraseña: §
пароль=§
パスワード：§
密码：§
user=bob pass=§
Username: bob Password: §
your temporary password is: §
api key = §
otp: §
secret: "§"
""".strip().splitlines()

VALUES: list[object] = [
    {"password": {"value": CANARY}},
    {"credentials": [CANARY, "x"]},
    {"auth": {"username": "bob", "data": [{"x": CANARY}]}},
    {"a": [{"b": {"password": CANARY}}]},
    {"headers": {"Authorization": "Bearer " + CANARY}},
    {"headers": {"cookie": "sid=" + CANARY + "; theme=dark"}},
    {"env": {"DB_PASSWORD": CANARY}},
    ({"token": CANARY},),
    {"config": '{"password": "' + CANARY + '"}'},
    {"body": '{"outer": "{\\"api_key\\": \\"' + CANARY + '\\"}"}'},
    {"body": '"{\\"deep\\": \\"{\\\\\\"secret\\\\\\": \\\\\\"' + CANARY + '\\\\\\"}\\"}"'},
    {"name": "API_KEY", "value": CANARY},
    {"key": "password", "value": CANARY},
    {"Name": "/prod/db/password", "Value": CANARY},
    {"name": "Authorization", "value": "Bearer " + CANARY},
    [{"name": "DB_PASS", "value": CANARY}],
    {"header": "X-Api-Key", "value": CANARY},
    {"Key": "secret", "Value": {"nested": CANARY}},
    [["password", CANARY]],
    ("Authorization", "Bearer " + CANARY),
    [["X-Api-Key", CANARY], ["a", "b"]],
    [("cookie", "sid=" + CANARY)],
    ["token", CANARY],
    {"headers": [["authorization", "Basic " + CANARY]]},
    ["curl", "-H", "Authorization: Bearer " + CANARY, "https://x.y"],
    ["--password", CANARY],
    ["app", "--token=" + CANARY],
    ["--api-key", CANARY],
    ["curl", "-u", "user:" + CANARY, "https://x.y"],
    ["curl", "--user", "bob:" + CANARY],
    ["PGPASSWORD=" + CANARY, "psql"],
    ["mysql", "-p" + CANARY],
    ["docker", "login", "-u", "me", "-p", CANARY],
    ["sshpass", "-p", CANARY, "ssh", "h"],
    ["redis-cli", "-a", CANARY],
    ["-password", CANARY],
    ["docker", "run", "-e", "POSTGRES_PASSWORD=" + CANARY, "postgres"],
    ["gh", "auth", "login", "--with-token", "--token", CANARY],
    ["helm", "install", "--set", "auth.password=" + CANARY],
    ["curl", "-H", "X-API-Key: " + CANARY],
    ["curl", "-b", "session=" + CANARY],
    ["psql", "postgresql://u:" + CANARY + "@h/db"],
    ["vault", "login", "token=" + CANARY],
    ["mongosh", "-u", "a", "-p", CANARY],
    ["az", "login", "--service-principal", "-p", CANARY],
    ["--client-secret", CANARY, "--verbose"],
    ["env", "API_KEY=" + CANARY, "run"],
    "export DB_PASSWORD='correct horse battery staple'",
    "DB_PASSWORD=" + CANARY + "\nDEBUG=1",
    "# config\nsecret_key = '" + CANARY + "'",
    "- name: API_KEY\n  value: " + CANARY,
    "password: |\n  " + CANARY + "\nuser: x",
    "db:\n  password: " + CANARY + "\n  user: bob",
    "[default]\naws_access_key_id = x\naws_secret_access_key=" + CANARY,
    "passphrase: correct horse battery staple",
    "tokens: ok\ntoken: " + CANARY,
    "GET / HTTP/1.1\r\nCookie: sid=" + CANARY + "\r\nHost: x",
    "Basic Ym9iOmh1bnRlcjJodW50ZXI=",
    RuntimeError("login failed for https://bob:" + CANARY + "@h"),
    ValueError("bad config: password=" + CANARY),
    KeyError("token=" + CANARY),
    ("password=" + CANARY).encode(),
    {"password=" + CANARY: 1},
    "-----BEGIN RSA PRIVATE KEY-----\n" + LONG + "\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\\n" + LONG + "\\n",
    "-----BEGIN OPENSSH PRIVATE KEY-----\n" + LONG,
    {"k": "-----BEGIN EC PRIVATE KEY-----\n" + LONG + "\n-----END EC PRIVATE KEY-----"},
    "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n" + LONG + "\n-----END PGP PRIVATE KEY BLOCK-----",
    {"DATABASE_URL": "mysql://root:" + CANARY + "@10.0.0.1/x"},
    {"env": ["API_KEY=" + CANARY, "PATH=/bin"]},
    {"Env": ["POSTGRES_PASSWORD=" + CANARY]},
    {"environment": {"SLACK_SIGNING_SECRET": CANARY}},
    "Traceback...\nValueError: invalid credentials: user=bob password=" + CANARY,
    "  File x\nKeyError: 'token=" + CANARY + "'",
    "[profile x]\naws_secret_access_key = " + CANARY,
    {"set-cookie": ["a=" + CANARY + "; Path=/"]},
    {"cookies": {"sid": CANARY}},
    "user: bob\npass: " + CANARY,
    ["sh", "-c", "export TOKEN=" + CANARY + "; run"],
    ["bash", "-lc", "curl -u bob:" + CANARY + " x"],
    ["docker", "run", "--env", "TOKEN=" + CANARY],
    ["x", "--secret", CANARY],
    ["x", "--access-token", CANARY],
    ["x", "-token", CANARY],
    ["x", "--db-password", CANARY],
    ["openssl", "-passin", "pass:" + CANARY],
    {"args": ["--password", CANARY]},
    {"command": "mysql -p" + CANARY},
    {"cmd": ["mysql", "--password=" + CANARY]},
    {"url": "https://x/?access_token=" + CANARY},
    {"log": "token=" + CANARY},
    {"data": {"nested": [{"password": CANARY}]}},
    {"headers": [{"name": "authorization", "value": "Bearer " + CANARY}]},
    {"parameters": [{"ParameterKey": "DBPassword", "ParameterValue": CANARY}]},
    {"key": "DB_PASSWORD", "val": CANARY},
    {"k": "token", "v": CANARY},
    {"variable": "SECRET", "value": CANARY},
    {"SecretString": '{"username": "a", "password": "' + CANARY + '"}'},
    {"x": {"Authorization": CANARY}},
    {"tls.key": "-----BEGIN PRIVATE KEY-----\n" + CANARY + CANARY + CANARY + CANARY},
    {"kubeconfig": "users:\n- user:\n    token: " + CANARY + "\n"},
    {"netrc": "machine x\nlogin y\npassword " + CANARY + "\n"},
    {"pgpass": "h:5432:db:u:" + CANARY},
    {"db": {"pwd": CANARY}},
    (1, {"password": (CANARY,)}),
    {"password": [CANARY]},
    {"passwords": {"a": CANARY}},
    {"token": 123456789012},
    {"pin": "4821"},
    {"otp": 482913},
]

TOKENS = [
    "AKIA" + "Q" * 8 + "7" * 8,
    "ASIA" + "Q" * 8 + "7" * 8,
    "ghp_" + LONG[:36],
    "gho_" + LONG[:36],
    "ghu_" + LONG[:36],
    "ghs_" + LONG[:36],
    "ghr_" + LONG[:36],
    "github_pat_" + LONG[:22] + "_" + LONG[:59],
    "glpat-" + LONG[:20],
    "xoxb-" + "1" * 12 + "-" + LONG[:24],
    "xoxp-" + "1" * 12 + "-" + LONG[:24],
    "xapp-1-A0-1-" + HEX,
    "https://hooks.slack.com/services/T00/B00/" + LONG[:24],
    "sk_live_" + LONG[:24],
    "rk_live_" + LONG[:24],
    "sk_test_" + LONG[:24],
    "whsec_" + LONG[:32],
    "sk-" + LONG[:48],
    "sk-proj-" + LONG[:48],
    "sk-ant-api03-" + LONG[:60],
    "AIza" + LONG[:35],
    "ya29." + LONG[:60],
    "GOCSPX-" + LONG[:28],
    "npm_" + LONG[:36],
    "pypi-AgEI" + LONG[:60],
    "hf_" + LONG[:34],
    "SG." + LONG[:22] + "." + LONG[:43],
    "dop_v1_" + HEX,
    "shpat_" + HEX[:32],
    "123456789:AA" + LONG[:33],
    "M" + LONG[:23] + "." + LONG[:6] + "." + LONG[:27],
    "eyJ" + LONG[:20] + ".eyJ" + LONG[:30] + "." + LONG[:43],
    "hvs." + LONG[:24],
    "dapi" + HEX[:32],
    "lin_api_" + LONG[:40],
    "secret_" + LONG[:43],
    "ntn_" + LONG[:46],
    "AGE-SECRET-KEY-1" + "QP7" * 19,
    "key-" + HEX[:32],
    HEX[:32] + "-us12",
    "sq0csp-" + LONG[:43],
    "dckr_pat_" + LONG[:27],
    "glsa_" + LONG[:32],
    "r8_" + LONG[:37],
    "gsk_" + LONG[:52],
    "https://discord.com/api/webhooks/123456789/" + LONG[:60],
    "SK" + HEX[:32],
    "sk-or-v1-" + HEX,
    "xox" + "e.xoxp-1-" + LONG[:60],
]

CASES: list[object] = [
    *({key: CANARY} for key in KEYS),
    *(text.replace("§", CANARY) for text in TEXTS),
    *VALUES,
    *(f"see {token} here" for token in TOKENS),
]
REMNANTS = (CANARY, LONG[:12], LONG[12:24], HEX[:12], "battery", "Ym9iOmh1", "Q" * 8 + "7", "QP7" * 4)


@pytest.mark.parametrize("value", CASES, ids=map(str, range(len(CASES))))
def test_secret_is_hidden_and_masking_again_changes_nothing(value: object) -> None:
    masker = Masker()
    masked = masker(value)
    shown = json.dumps(masked, default=str, ensure_ascii=False)
    assert not [remnant for remnant in REMNANTS if remnant in shown], shown
    assert MASK in shown
    assert masker(masked) == masked


def test_corpus_is_large_enough() -> None:
    assert len(CASES) >= 150
