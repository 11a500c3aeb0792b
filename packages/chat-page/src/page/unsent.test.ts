import { describe, expect, it } from '@jest/globals';
import type { UiMessage, UiPart } from './ui-message.js';
import { hasArrived, type Unsent } from './unsent.js';

const file: UiPart = { type: 'file', url: 'data:image/heic;base64,AA==', mediaType: 'image/heic' };
const question = (...parts: readonly UiPart[]): UiMessage => ({
  ...{
    id: 'q',
    role: 'user',
    parts: [{ type: 'text', text: 'What is it?', isOpen: false }, ...parts],
  },
});
const sent = (kind: Unsent['kind'], message: UiMessage): Unsent => ({ ...message, kind, after: 0 });

describe('a message that was sent', () => {
  it('has not arrived as an edit while its question has the file that the edit removes', () => {
    expect(hasArrived(sent('edit', question()), [question(file)])).toBe(false);
    expect(hasArrived(sent('edit', question()), [question()])).toBe(true);
    expect(hasArrived(sent('edit', question(file)), [question(file)])).toBe(true);
    expect(hasArrived(sent('edit', question(file)), [question(file, file)])).toBe(false);
    expect(hasArrived(sent('edit', question(file)), [question()])).toBe(true);
  });

  it('has arrived as a question, even if the server has kept none of its files', () => {
    expect(hasArrived(sent('question', question(file)), [question()])).toBe(true);
  });
});
