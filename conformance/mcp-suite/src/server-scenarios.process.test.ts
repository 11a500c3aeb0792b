import { expect, it } from '@jest/globals';
import { play, revisions, scenariosOf } from './scenarios.js';
import { unsupported } from './unsupported.js';

it.each(revisions)(
  'serveMcp passes the scenarios for servers of %s, except for what it does not support',
  async (revision) => {
    const played = await play('server', revision);
    expect(played.length).toBeGreaterThan(30);
    expect(played.filter(({ isWrong }) => isWrong)).toEqual([]);
    expect(played.filter(({ problems }) => problems.length > 0).map(({ name }) => name)).toEqual(
      played.map(({ name }) => name).filter((name) => Object.hasOwn(unsupported.server, name)),
    );
  },
);

it.each(revisions)('no scenario that %s requires is expected to fail', async (revision) => {
  const all = [
    ...(await scenariosOf('server', revision)),
    ...(await scenariosOf('client', revision)),
  ];
  const required = all.filter(({ isRequired }) => isRequired);
  expect(required.length).toBeGreaterThan(45);
  expect(required.filter(({ side, name }) => Object.hasOwn(unsupported[side], name))).toEqual([]);
});
