export const keys = {
  name: ['tool', 'tool_name', 'name', 'action', 'function'],
  input: [
    'inputs',
    'input',
    'arguments',
    'args',
    'parameters',
    'params',
    'action_input',
    'tool_input',
  ],
  answer: ['final_answer', 'answer'],
  thought: ['thought', 'thoughts', 'scratchpad', 'reasoning'],
  other: ['type', 'id'],
} as const;

const all: readonly string[] = Object.values(keys).flat();

export const isKnownKey = (key: string): boolean => all.includes(key);

export const beginsKnownKey = (word: string): boolean => all.some((key) => key.startsWith(word));

export const isOneOf = (list: readonly string[], key: string): boolean => list.includes(key);
