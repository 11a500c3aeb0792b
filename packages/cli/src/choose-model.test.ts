import { describe, expect, it } from '@jest/globals';
import { scriptedModel } from '@millrace/core/testing';
import { chooseModel, type ModelChoice } from './choose-model.js';

const choice = (name: string, variables: readonly string[]): ModelChoice => ({
  variables,
  package: name,
  factory: () => Promise.resolve({ model: scriptedModel(), about: name, unit: 'tokens' }),
});

describe('chooseModel', () => {
  it('takes the embedded model, and says that it is no language model', async () => {
    const { model, about, unit, warnings } = await chooseModel({}, 0);
    expect(model.name).toBe('embedded-rules');
    expect(about).toMatch(/not a language model/);
    expect([unit, warnings]).toEqual(['words', []]);
  });

  it('says that a package is not there yet, and no word of what the variables hold', async () => {
    const env = {
      OPENAI_API_KEY: 'sk-secret',
      OPENAI_BASE_URL: '',
      ANTHROPIC_API_KEY: 'sk-secret',
    };
    const { model, warnings } = await chooseModel(env, 0);
    expect(model.name).toBe('embedded-rules');
    expect(warnings).toEqual([
      'OPENAI_API_KEY is set, but @millrace/openai is not there yet: @millrace/embedded answers.',
      'ANTHROPIC_API_KEY is set, but @millrace/anthropic is not there yet: @millrace/embedded answers.',
    ]);
    expect(JSON.stringify(warnings)).not.toContain('secret');
  });

  it('takes the first that a variable asks for', async () => {
    const choices = [choice('a', ['A']), choice('b', ['B1', 'B2']), choice('c', ['B1'])];
    expect((await chooseModel({ B2: 'x', B1: 'x' }, 0, choices)).about).toBe('b');
  });

  it('takes the one that needs no variable where none is set', async () => {
    const choices = [choice('a', ['A']), choice('fallback', [])];
    expect(await chooseModel({ A: '' }, 0, choices)).toMatchObject({
      about: 'fallback',
      warnings: [],
    });
  });
});
