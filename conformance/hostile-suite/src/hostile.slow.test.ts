import { describe, expect, it } from '@jest/globals';
import { scenes } from './index.js';

describe('each attack on a promise', () => {
  it.each(
    scenes.map((scene) => [[scene.rule, scene.promise].filter(Boolean).join(': '), scene] as const),
  )('%s', async (_, scene) => {
    const rows = await scene.play();
    expect(rows.filter(({ broke }) => broke !== undefined)).toEqual([]);
    expect(rows.map(({ attack }) => attack)).toEqual(scene.attacks);
  });
});
