import { describe, expect, it } from '@jest/globals';
import { runsCode } from './runs-code.js';

describe('runsCode', () => {
  it.each([
    '.git/hooks/pre-commit',
    '.husky/pre-push',
    '.gitattributes',
    '.pre-commit-config.yaml',
    'package.json',
    'packages/a/package.json',
    'node_modules/left-pad/index.js',
    'vite.config.ts',
    '.eslintrc.cjs',
    '.prettierrc',
    'Makefile',
    'build.gradle.kts',
    'build.rs',
    '.cargo/config.toml',
    'setup.py',
    'tests/conftest.py',
    'pyproject.toml',
    'lib/site-packages/a.pth',
    'home/.zshrc',
    '.config/fish/config.fish',
    'etc/cron.d/task',
    'units/backup.service',
    '.github/workflows/ci.yml',
    '.gitlab-ci.yml',
    'Dockerfile.dev',
    'compose.override.yaml',
    '.devcontainer/devcontainer.json',
    '.vscode/tasks.json',
    'a.code-workspace',
    '.mcp.json',
    '.claude/settings.json',
    'AGENTS.md',
    '.cursor/rules/a.mdc',
    'tools/deploy.sh',
    'run.ps1',
  ])('%s does', (path) => {
    expect(runsCode(path, '')).toEqual(expect.any(String));
  });

  it.each([
    'README.md',
    'src/index.ts',
    'src/arc.ts',
    'src/cron.ts',
    'docs/package.md',
    'config.md',
    'data/claude.csv',
    'src/shell.ts',
    'user.service.ts',
  ])('%s does not', (path) => {
    expect(runsCode(path, '')).toBeUndefined();
  });

  it('a file that starts like a script does', () => {
    expect(runsCode('bin/tool', '#!/usr/bin/env node\n')).toContain('script');
  });
});
