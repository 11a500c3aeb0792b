import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { areInstalled, installedPart, partFor, rememberCommandInstalled } from './dependencies.mjs';

let root;
const write = (file, packages) => writeFileSync(join(root, file), JSON.stringify({ packages }));
const rxjs = (version) => ({ 'node_modules/rxjs': { version, integrity: `sha of ${version}` } });

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'dependencies-'));
  mkdirSync(join(root, 'node_modules'));
  write('package-lock.json', { '': {}, ...rxjs('7.8.2') });
});
afterEach(() => rmSync(root, { recursive: true }));

describe('dependencies are installed', () => {
  it('when npm recorded what the lock file asks for', () => {
    write('node_modules/.package-lock.json', rxjs('7.8.2'));
    expect(areInstalled(root)).toBe(true);
  });

  it('without the optional packages of other platforms', () => {
    const binding = { 'node_modules/binding-win32': { version: '1.0.0', optional: true } };
    write('package-lock.json', { '': {}, ...rxjs('7.8.2'), ...binding });
    write('node_modules/.package-lock.json', rxjs('7.8.2'));
    expect(areInstalled(root)).toBe(true);
  });
});

describe('dependencies are not installed', () => {
  it('when npm recorded nothing, as after an interrupted install', () => {
    expect(areInstalled(root)).toBe(false);
  });

  it('when npm recorded nothing and every package is optional', () => {
    write('package-lock.json', {
      '': {},
      'node_modules/node': { version: '1.0.0', optional: true },
    });
    expect(areInstalled(root)).toBe(false);
  });

  it('while the record is being written', () => {
    writeFileSync(join(root, 'node_modules/.package-lock.json'), '{"packages": {');
    expect(areInstalled(root)).toBe(false);
  });

  it('when a version differs', () => {
    write('node_modules/.package-lock.json', rxjs('7.8.1'));
    expect(areInstalled(root)).toBe(false);
  });

  it('when the lock file no longer names a package', () => {
    write('node_modules/.package-lock.json', { ...rxjs('7.8.2'), 'node_modules/left': {} });
    expect(areInstalled(root)).toBe(false);
  });
});

describe('the part for the command', () => {
  const jest = { 'node_modules/jest': { version: '30.0.0' } };

  beforeEach(() => write('package-lock.json', { '': {}, ...rxjs('7.8.2'), ...jest }));

  /** What `npm ci` with the workspace of the command leaves. */
  function installCommand() {
    write('node_modules/.package-lock.json', rxjs('7.8.2'));
    rememberCommandInstalled(root);
  }

  it('is enough for the command in a fresh clone, and for nothing else', () => {
    expect(installedPart(root)).toBeUndefined();
    expect(partFor(root, 'command')).toBe('command');
    expect(partFor(root, 'all')).toBe('all');
  });

  it('is installed once npm recorded it, and is not mistaken for all', () => {
    installCommand();
    expect(installedPart(root)).toBe('command');
    expect(partFor(root, 'command')).toBe('command');
    expect(areInstalled(root)).toBe(false);
    expect(partFor(root, 'all')).toBe('all');
  });

  it('is not installed for another lock file, nor after an interrupted install', () => {
    installCommand();
    write('package-lock.json', { '': {}, ...rxjs('7.8.3'), ...jest });
    expect(installedPart(root)).toBeUndefined();
    expect(partFor(root, 'command')).toBe('command');
    installCommand();
    rmSync(join(root, 'node_modules/.package-lock.json'));
    expect(installedPart(root)).toBeUndefined();
  });

  it('never replaces an installation of all, even if that is not up to date', () => {
    write('node_modules/.package-lock.json', { ...rxjs('7.8.1'), ...jest });
    expect(installedPart(root)).toBeUndefined();
    expect(partFor(root, 'command')).toBe('all');
  });

  it('becomes all once all is installed', () => {
    installCommand();
    write('node_modules/.package-lock.json', { ...rxjs('7.8.2'), ...jest });
    expect(installedPart(root)).toBe('all');
    expect(partFor(root, 'command')).toBe('all');
  });
});
