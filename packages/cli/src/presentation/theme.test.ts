import { describe, expect, it } from '@jest/globals';
import { createTheme } from './theme.js';

const terminal = { isTTY: true, columns: 100 };
const pipe = {};

const themeOf = (
  env: Record<string, string>,
  output = terminal,
  color = true,
  platform = 'linux',
) => createTheme({ env, output, color, platform });

describe('createTheme', () => {
  it.each([
    ['in a terminal', {}, terminal, true, true],
    ['not in a pipe', {}, pipe, true, false],
    ['not where it is not wanted', {}, terminal, false, false],
    ['not with NO_COLOR', { NO_COLOR: '1' }, terminal, true, false],
    ['in a pipe with FORCE_COLOR', { FORCE_COLOR: '1' }, pipe, true, true],
    ['not with FORCE_COLOR=0', { FORCE_COLOR: '0' }, terminal, true, false],
    ['not with both', { FORCE_COLOR: '1', NO_COLOR: '1' }, terminal, true, false],
    ['as ever with an empty NO_COLOR', { NO_COLOR: '' }, terminal, true, true],
    ['not in a dumb terminal', { TERM: 'dumb' }, terminal, true, false],
  ])('has colour: %s', (_where, env, output, color, expected) => {
    const { colors } = createTheme({ env, output, color, platform: 'linux' });
    expect(colors.red('x') !== 'x').toBe(expected);
  });

  it.each([
    [{}, 'linux', true],
    [{ LANG: 'de_DE.UTF-8' }, 'linux', true],
    [{ LANG: 'C' }, 'linux', false],
    [{ LC_ALL: 'C', LANG: 'en_US.utf8' }, 'linux', false],
    [{ LC_ALL: '', LC_CTYPE: 'UTF-8' }, 'darwin', true],
    [{ TERM: 'linux' }, 'linux', false],
    [{}, 'win32', false],
    [{ WT_SESSION: 'x' }, 'win32', true],
  ])('knows by %j on %s whether Unicode is shown: %s', (env, platform, expected) => {
    expect(themeOf(env, terminal, true, platform).unicode).toBe(expected);
  });

  it.each([
    [undefined, 72],
    [0, 72],
    [10, 40],
    [100, 100],
    [300, 120],
  ])('is as wide as the terminal, within reason: %s columns make %d', (columns, expected) => {
    const output = { isTTY: true, columns };
    expect(createTheme({ env: {}, output, color: true, platform: 'linux' }).width).toBe(expected);
  });
});
