import { jsonSchema } from 'millrace/schema';

/** The schema of the path of a file. */
export const filePath = {
  type: 'string',
  minLength: 1,
  maxLength: 1_024,
  description: 'The path of the file, relative to the root directory.',
  examples: ['notes.md', 'src/index.ts'],
} as const;

/** The input of `write_file`. */
export const writeFileInput = jsonSchema({
  type: 'object',
  properties: {
    path: filePath,
    content: { type: 'string', description: 'The whole new content of the file.' },
  },
  required: ['path', 'content'],
  additionalProperties: false,
});

/** The input of `edit_file`. */
export const editFileInput = jsonSchema({
  type: 'object',
  properties: {
    path: filePath,
    oldText: { type: 'string', minLength: 1, description: 'The text to replace.' },
    newText: { type: 'string', description: 'The text to put in its place.' },
    all: { type: 'boolean', description: 'Whether to replace every occurrence. Default: false.' },
  },
  required: ['path', 'oldText', 'newText'],
  additionalProperties: false,
});

/** A part of a string, and its replacement. */
export interface TextEdit {
  readonly oldText: string;
  readonly newText: string;
  /** Whether to replace every occurrence. Default: false, and the old text must occur once. */
  readonly all?: boolean;
}

/** Returns the text of a file after an edit. `before` is undefined if there is no file. Throws an error with a sentence for the model if the edit does not fit. */
export const editedText = (
  before: string | undefined,
  { oldText, newText, all: isForAll = false }: TextEdit,
): string => {
  if (before === undefined) throw new Error('There is no such file. Create it with write_file.');
  const parts = before.split(oldText);
  if (parts.length === 1) {
    throw new Error(
      'The file does not contain the old text. Read the file, and copy the text exactly, with spaces and line breaks.',
    );
  }
  if (parts.length > 2 && !isForAll) {
    throw new Error(
      `The file contains the old text ${parts.length - 1} times. Include the lines around it, or set all to true.`,
    );
  }
  return parts.join(newText);
};
