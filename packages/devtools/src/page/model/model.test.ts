import { describe, expect, it } from '@jest/globals';
import { travel } from './runs.test-support.js';
import { createRun } from './run.js';

describe('x', () => {
  it('prints', () => {
    const { items } = travel();
    const run = createRun();
    run.log.append(items);
    console.log(items.map((i) => JSON.stringify(i).slice(0, 150)).join('\n'));
    expect(run.log.size).toBe(1);
  });
});
