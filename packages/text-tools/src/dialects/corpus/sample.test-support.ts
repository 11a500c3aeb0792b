import type { ToolDeclaration } from 'millrace';

/** The dialects that the corpus is written in. */
export type DialectName = 'action' | 'flat' | 'steps' | 'lines';

type Use = readonly [name: string, input: Readonly<Record<string, unknown>>];

/** What a reply must come to. */
export type Expected =
  | { readonly uses: readonly Use[]; readonly text?: string }
  | { readonly answer: string }
  | { readonly refused: true }
  | { readonly thought: string };

/** A reply that is broken or odd, and how it must be read. */
export interface Sample {
  readonly dialect: DialectName;
  readonly name: string;
  readonly text: string;
  readonly expected: Expected;
  readonly by: 'local' | 'repair' | 'refused';
}

/** The tools that the samples ask for. */
export const corpusTools: readonly ToolDeclaration[] = [
  {
    name: 'search',
    description: 'Searches.',
    inputSchema: { type: 'object', properties: { q: { type: 'string' } }, required: ['q'] },
  },
  {
    name: 'weather',
    description: 'Tells the weather.',
    inputSchema: {
      type: 'object',
      properties: {
        city: { type: 'string' },
        days: { type: 'integer' },
        units: { type: 'object' },
      },
      required: ['city'],
    },
  },
  {
    name: 'run',
    description: 'Runs code.',
    inputSchema: {
      type: 'object',
      properties: { code: { type: 'string' }, dry: { type: 'boolean' } },
      required: ['code'],
    },
  },
  { name: 'now', description: 'Tells the time.', inputSchema: { type: 'object', properties: {} } },
];

export type Row = readonly [
  name: string,
  text: string,
  expected: Expected,
  by?: 'local' | 'repair',
];

export const use = (name: string, input: Readonly<Record<string, unknown>> = {}): Expected => ({
  uses: [[name, input]],
});
export const uses = (...all: readonly Use[]): Expected => ({ uses: all });
export const answer = (text: string): Expected => ({ answer: text });
export const refused: Expected = { refused: true };
export const thought = (text: string): Expected => ({ thought: text });
export const search: Expected = use('search', { q: 'cats' });
export const rome: Expected = use('weather', { city: 'Rome', days: 2 });

/** A key of the prototype as ordinary data. */
export const hostile: Readonly<Record<string, unknown>> = Object.fromEntries<unknown>([
  ['__proto__', { polluted: true }],
  ['q', 'cats'],
]);
