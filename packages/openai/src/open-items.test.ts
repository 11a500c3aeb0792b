import { describe, expect, it } from '@jest/globals';
import { createOpenItems } from './open-items.js';

const added = (output_index: number, type: string) => ({
  type: 'response.output_item.added',
  output_index,
  item: { type },
});
const done = (output_index: number) => ({ type: 'response.output_item.done', output_index });

describe('C5: the open items of a response', () => {
  it.each(['reasoning', 'web_search_call', 'code_interpreter_call', 'mcp_call', 'function_call'])(
    'show that the model works: %s',
    (type) => {
      const items = createOpenItems();
      expect(items.working()).toBeUndefined();
      items.note(added(0, type));
      items.note({ type: 'keepalive' });
      expect(items.working()).toBe(type);
      items.note(added(1, 'message'));
      expect(items.working()).toBe(type);
      items.note(done(0));
      expect(items.working()).toBeUndefined();
    },
  );
});
