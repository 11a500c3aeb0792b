import { describe, expect, it } from '@jest/globals';
import { chooseTool } from './choose-tool.js';
import { declare, fourTools } from './declarations.test-data.js';
import { readTools } from './read-tools.js';

const nameFor = (text: string, tools = fourTools): string | undefined =>
  chooseTool(text, readTools(tools))?.tool.name;

describe('chooseTool', () => {
  it.each([
    ['what time is it in Paris', 'clock'],
    ['what is the weather in Paris', undefined],
    ['the clock', 'clock'],
    ['how does the clock work', undefined],
    ['6 * 7', 'calculator'],
    ['How does src/loop.ts handle interrupts?', 'read_file'],
    ['search the documentation for interrupts', 'search_docs'],
    ['my daughter has 7 * 8 marbles', 'calculator'],
    ['', undefined],
  ])('%j → %s', (text, name) => {
    expect(nameFor(text)).toBe(name);
  });

  it('tells tools of the same parameter apart by their words', () => {
    const path = { path: { type: 'string' } };
    const tools = [
      declare('delete_file', 'Deletes a file.', path),
      declare('read_file', 'Reads a file.', path),
    ];
    expect(nameFor('show me notes.txt', tools)).toBe('read_file');
    expect(nameFor('remove notes.txt', tools)).toBe('delete_file');
  });

  it('takes no path for a wish to delete', () => {
    const tools = [declare('delete_file', 'Deletes a file.', { path: { type: 'string' } })];
    expect(nameFor('show me notes.txt', tools)).toBeUndefined();
    expect(nameFor('delete notes.txt', tools)).toBe('delete_file');
  });

  it('finds one among thousands', () => {
    const many = Array.from({ length: 2_000 }, (_, index) =>
      declare(`tool_${index}`, `Does task ${index}.`, {}),
    );
    expect(nameFor('what time is it in Rome', [...many, ...fourTools])).toBe('clock');
  });
});
