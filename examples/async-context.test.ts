import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { context } from '@opentelemetry/api';
import { contextManager, play, type Variant, variants } from './async-context.test-support.js';
import { kernelWaits } from './kernel-waits.test-support.js';
import { packageWaits, stop } from './package-waits.test-support.js';

beforeAll(() => void context.setGlobalContextManager(contextManager.enable()));
afterAll(() => {
  stop();
  context.disable();
});

const names = Object.keys(variants).filter((name): name is Variant => name in variants);

describe.each(names)('three users share what waits, %s', (variant) => {
  it.each([...kernelWaits, ...packageWaits])('I21: $name', async (wait) => {
    expect(await play(wait, variant)).toEqual([]);
  });
});
