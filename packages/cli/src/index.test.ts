import { describe, expect, it } from '@jest/globals';
import * as core from '@millrace/core';
import * as anthropic from '@millrace/anthropic';
import * as demoModels from '@millrace/demo-model';
import * as openai from '@millrace/openai';
import * as testing from '@millrace/core/testing';
import * as ownAnthropic from 'millrace/anthropic';
import * as ownDemoModels from 'millrace/demo-model';
import * as ownOpenai from 'millrace/openai';
import * as ownTesting from 'millrace/testing';
import { createAgent, jsonSchema, openFiles, sessions, textOf, tool } from 'millrace';
import * as main from 'millrace';

const { demoModel } = ownDemoModels;

describe('millrace', () => {
  it('has what a first agent needs: a typed tool, a model and a session', async () => {
    const weather = tool({
      name: 'weather',
      description: 'Returns the weather of a city today.',
      input: jsonSchema({
        type: 'object',
        properties: { city: { type: 'string', description: 'Name of a city', examples: ['Oslo'] } },
        required: ['city'],
        additionalProperties: false,
      }),
      run: ({ city }) => `Snow in ${city}, -3 °C.`,
    });
    const agent = createAgent({ model: demoModel(), tools: [weather] });
    const reply = await sessions(agent).open('user-42').call('What is the weather in Oslo?');
    expect(textOf(reply)).toContain('Snow in Oslo');
  });

  it('exports the same objects as core, and the file store', () => {
    const ofCore = Object.entries(main).filter(([name]) => name in core);
    expect(ofCore.length).toBeGreaterThan(25);
    for (const [name, value] of ofCore) expect(value).toBe(Reflect.get(core, name));
    expect(typeof openFiles).toBe('function');
  });

  it('stays small: no more than 40 names, without types', () => {
    expect(Object.keys(main).length).toBeLessThanOrEqual(40);
  });

  it.each([
    ['anthropic', ownAnthropic, anthropic],
    ['demo-model', ownDemoModels, demoModels],
    ['openai', ownOpenai, openai],
    ['testing', ownTesting, testing],
  ])('millrace/%s exports everything of its package', (_name, own, whole) => {
    expect({ ...own }).toEqual({ ...whole });
  });
});
