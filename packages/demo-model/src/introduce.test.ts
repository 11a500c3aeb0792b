import { describe, expect, it } from '@jest/globals';
import { declare } from './declarations.test-data.js';
import { decline, demoModelDescription, exampleQuestion, introduce } from './introduce.js';
import { readTools } from './read-tools.js';

describe('introduce', () => {
  it('says that it is no language model', () => {
    expect(introduce(readTools([]))).toContain(demoModelDescription);
    expect(introduce(readTools([]))).toContain('no tools here');
  });

  it('lists some tools, and how many more there are', () => {
    const many = Array.from({ length: 20 }, (_, index) =>
      declare(`tool${index}`, 'Does x. Or y.', {}),
    );
    const text = introduce(readTools(many));
    expect(text).toContain('- tool0: Does x. Try “tool0?”\n');
    expect(text).toContain('- and 12 more');
  });
});

it('decline names the tools on one line', () => {
  const tools = readTools([declare('a_tool', 'Does a.', {}), declare('b', 'Does b.', {})]);
  expect(decline('this', tools)).toMatch(/none of my tools fits\. My tools: a_tool, b\.$/u);
});

it('introduce cuts no sentence', () => {
  const long = `Reads ${'a file, e.g. a text '.repeat(10)}of the project\nor lists it. Then more.`;
  expect(introduce(readTools([declare('read', long, {})]))).toMatch(
    /of the project or lists it\./u,
  );
  const endless = introduce(readTools([declare('read', `Reads ${'this, that '.repeat(60)}`, {})]));
  expect(endless).toMatch(/(?:this|that) …/u);
});

it('decline names what it cannot answer', () => {
  expect(decline('this', readTools([]))).toMatch(
    /^I cannot answer “this”: I am rules and retrieval/u,
  );
  expect(decline('', readTools([]))).toMatch(/^I cannot answer that/u);
});

describe('exampleQuestion', () => {
  it('is made of the declaration, and works', () => {
    const toolbox = readTools([
      declare('weather', 'Tells the weather of a city.', {
        city: { type: 'string', examples: ['Oslo'] },
      }),
      declare('order_status', 'Finds an order.', { id: { type: 'string', examples: ['ORD-1'] } }),
      declare('now', 'Tells what time it is.', {}),
      declare('vague', 'Does what it does.', { what: { type: 'object' } }),
    ]);
    expect(toolbox.tools.map((tool) => exampleQuestion(tool, toolbox))).toEqual([
      'weather in Oslo',
      'order status ORD-1',
      undefined,
      undefined,
    ]);
  });
});
