import { expect, it } from '@jest/globals';
import { playServer, scenariosOf } from './scenarios.js';
import { unsupported } from './unsupported.js';

it('serveMcp passes the scenarios for servers, except for what it does not support', async () => {
  const played = await playServer(await scenariosOf('server'));
  expect(played.length).toBeGreaterThan(30);
  expect(played.filter(({ isWrong }) => isWrong)).toEqual([]);
  expect(played.filter(({ problems }) => problems.length > 0).map(({ name }) => name)).toEqual(
    played.map(({ name }) => name).filter((name) => Object.hasOwn(unsupported.server, name)),
  );
});
