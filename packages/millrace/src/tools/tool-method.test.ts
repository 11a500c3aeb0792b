import { describe, expect, it } from '@jest/globals';
import { createAgent, type ToolContext, toolMethod, toolsOf } from '../index.js';
import { jsonSchema } from '../schema/index.js';
import { scriptedModel, text, toolCall } from '../testing/index.js';

class Counter {
  #count = 0;

  @toolMethod({
    description: 'Adds to the count.',
    input: jsonSchema({
      type: 'object',
      properties: { by: { type: 'number' } },
      required: ['by'],
      additionalProperties: false,
    }),
  })
  add({ by }: { by: number }): number {
    this.#count += by;
    return this.#count;
  }

  @toolMethod({ name: 'who_asks', description: 'Says which agent asks.', exclusive: true })
  who(_input: object, { agent }: ToolContext): string {
    return agent.join();
  }

  /** Not for a model. */
  reset(): void {
    this.#count = 0;
  }
}

describe('T1: a method that is a tool', () => {
  it('has what tool() would give it, and the state of its object', async () => {
    const [first, second] = [new Counter(), new Counter()];
    second.add({ by: 40 });
    const model = () =>
      scriptedModel([toolCall('add', { by: 2 }), toolCall('who_asks')], [text('done')]);
    const outputs = [first, second].map(async (counter) => {
      const agent = createAgent({ name: 'clerk', model: model(), tools: toolsOf(counter) });
      return (await agent.call('?')).toolCalls.map(({ output }) => output);
    });
    expect(await Promise.all(outputs)).toEqual([
      ['2', 'clerk'],
      ['42', 'clerk'],
    ]);
    expect(toolsOf(first).map(({ name, exclusive }) => [name, exclusive])).toEqual([
      ['add', false],
      ['who_asks', true],
    ]);
  });

  it('may be overridden by a subclass', async () => {
    class Doubling extends Counter {
      override add({ by }: { by: number }): number {
        return super.add({ by: by * 2 });
      }
    }
    const model = scriptedModel([toolCall('add', { by: 2 })], [text('done')]);
    const reply = await createAgent({ model, tools: toolsOf(new Doubling()) }).call('?');
    expect(reply.toolCalls[0]?.output).toBe('4');
  });

  it('may be overridden by one that is a tool of its own', () => {
    class Renamed extends Counter {
      @toolMethod({ name: 'increase', description: 'Adds to the count.' })
      override add(): number {
        return 1;
      }
    }
    expect(toolsOf(new Renamed()).map(({ name }) => name)).toEqual(['increase', 'who_asks']);
  });

  it('is looked for in vain in other objects', () => {
    expect(() => toolsOf({ add: () => 1 })).toThrow(/takes an instance of a class with methods/);
  });
});
