import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { installedPeers, ownAdapters, toolAdapters } from './adapters.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'bench-peers-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const peer = (name: string, engines: object, isInstalled = true): void => {
  mkdirSync(join(folder, name, isInstalled ? 'node_modules' : ''), { recursive: true });
  writeFileSync(join(folder, name, 'adapter.mjs'), '');
  writeFileSync(join(folder, name, 'package.json'), JSON.stringify({ engines }));
};

it('finds the peers that are installed, and the Node that they need', () => {
  peer('old', { node: '>=20' });
  peer('new', { node: '>=22.12.0' });
  peer('any', {});
  peer('absent', {}, false);
  mkdirSync(join(folder, 'node-24', 'node_modules'), { recursive: true });
  const module = (name: string) => join(folder, name, 'adapter.mjs');
  expect(installedPeers(pathToFileURL(`${folder}/`))).toEqual([
    { name: 'any', module: module('any'), floor: 'floor' },
    { name: 'new', module: module('new'), floor: 'floor', wantsNode: '22.12.0' },
    { name: 'old', module: module('old'), floor: 'floor', wantsNode: '20' },
  ]);
  expect(installedPeers(pathToFileURL(`${folder}/none/`))).toEqual([]);
});

it('every adapter of this package is there, and so is its floor', () => {
  for (const adapters of [ownAdapters, toolAdapters]) {
    const names = adapters.map(({ name }) => name);
    for (const { module, floor } of adapters) {
      expect(existsSync(module)).toBe(true);
      expect(names).toContain(floor);
    }
  }
});
