import { describe, expect, it } from '@jest/globals';
import { scenarios } from '../scenarios/scenarios.js';
import { ownAdapters } from './adapters.js';
import { readCommand } from './read-command.js';
import { UsageError } from './usage-error.js';

const peer = { name: 'peer', module: '/peer.mjs', floor: 'floor' };
const read = (text: string, peers = [peer]) =>
  readCommand(
    text.split(' ').filter((arg) => arg !== ''),
    peers,
  );
const names = (text: string) => read(text).adapters.map(({ name }) => name);

describe('the command line', () => {
  it('measures all of this repository, five times, by default', () => {
    expect(read('')).toMatchObject({ scenarios, adapters: ownAdapters, rounds: 5, isSmall: false });
    expect(read('').nodes).toEqual([{ path: process.execPath, version: process.versions.node }]);
  });

  it('asks for some scenarios, in their own order', () => {
    expect(read('--only d,a').scenarios.map(({ letter }) => letter)).toEqual(['a', 'd']);
  });

  it('asks for adapters, and for the floors that they are measured against', () => {
    expect(names('--adapters millrace')).toEqual(['floor', 'millrace']);
    expect(names('--adapters millrace-anthropic,floor')).toEqual([
      'floor',
      'floor-messages',
      'millrace-anthropic',
    ]);
    expect(names('--adapters peer')).toEqual(['floor', 'peer']);
  });

  it('asks for peers beside them', () => {
    expect(names('--peers')).toEqual([...ownAdapters.map(({ name }) => name), 'peer']);
    expect(names('--peers --adapters openai-sdk')).toEqual(['floor', 'openai-sdk', 'peer']);
  });

  it('asks for a quick look, which is one round', () => {
    expect(read('--small')).toMatchObject({ isSmall: true, rounds: 1 });
    expect(read('--small --rounds 3').rounds).toBe(3);
  });

  it('asks for other programs', () => {
    expect(read(`--node ${process.execPath} --node ${process.execPath}`).nodes).toHaveLength(2);
    const [major] = process.versions.node.split('.');
    expect(read(`--node ${major}`).nodes).toEqual(read('').nodes);
  });

  it.each([
    ['--only x', /no scenario 'x'.*a, b, c, d, e, f, g, h, i, j/],
    ['--only a,', /no scenario ''/],
    ['--adapters floor,ai', /no adapter 'ai'.*millrace.*bench:peers/],
    ['--rounds 0', /from 1, not '0'/],
    ['--rounds many', /not 'many'/],
    ['--node 7', /Node 7 is not installed.*bench:peers/],
    ['--node /no/such/node', /no \/no\/such\/node/],
    [`--node ${import.meta.filename}`, /is no Node/],
    ['--fast', /--fast/],
    ['a', /'a'/],
  ])('refuses %s', (text, why) => {
    expect(() => read(text)).toThrow(UsageError);
    expect(() => read(text)).toThrow(why);
  });

  it('refuses peers that are not installed', () => {
    expect(() => read('--peers', [])).toThrow(/bench:peers/);
  });
});
