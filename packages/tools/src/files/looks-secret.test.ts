import { describe, expect, it } from '@jest/globals';
import { looksSecret } from './looks-secret.js';

describe('looksSecret', () => {
  it.each([
    '.env',
    '.env.production',
    'config/.ENV',
    'prod.env',
    '.git/config',
    'a/.git/HEAD',
    '.ssh/known_hosts',
    '.aws/credentials',
    'id_rsa',
    'keys/id_ed25519',
    'server.pem',
    'server.key',
    'store.p12',
    '.npmrc',
    'packages/a/.npmrc',
    '.netrc',
    'credentials.json',
    'secrets.yaml',
    'service-account-prod.json',
    'terraform.tfstate',
    '.git',
    '.env-local',
    '.env~',
    '.dev.vars',
    'prod.secrets.yaml',
    'secrets.staging.json',
    'my-credentials.json',
    'client_secret_123.json',
    'acme-firebase-adminsdk-x1.json',
    'home/.bash_history',
    'prod.tfvars',
    'office.ovpn',
    '.password-store/mail.gpg',
    '.millrace/sessions/a.json',
    '.env.',
    '.env ',
    '.ENV::$DATA',
    'id_rsa:copy',
    '.git. ./config',
    '.g\u200cit/config',
    'GIT~1/config',
  ])('%s does', (path) => {
    expect(looksSecret(path)).toBe(true);
  });

  it.each([
    '',
    'README.md',
    'src/index.ts',
    '.env.example',
    'id_rsa.pub',
    '.gitignore',
    '.github/workflows/ci.yml',
    'src/secrets.test.ts',
    'keyboard.ts',
    'environment.md',
    'docs/secret-santa.json',
    'src/tokens.json',
    'environments.ts',
    '...',
    '..',
    ':',
    'C: notes.md',
  ])('%s does not', (path) => {
    expect(looksSecret(path)).toBe(false);
  });
});
