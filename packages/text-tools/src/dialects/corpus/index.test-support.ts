import { action } from './action.test-support.js';
import { answers } from './answers.test-support.js';
import { asides, remarks } from './asides.test-support.js';
import { backslashes, backslashesInActions } from './backslashes.test-support.js';
import { behindNames } from './behind-names.test-support.js';
import { drafts } from './drafts.test-support.js';
import { endings } from './endings.test-support.js';
import { flat } from './flat.test-support.js';
import { inProse } from './in-prose.test-support.js';
import { invented } from './invented.test-support.js';
import { lines } from './lines.test-support.js';
import type { DialectName, Row, Sample } from './sample.test-support.js';
import { steps } from './steps.test-support.js';

const all: readonly DialectName[] = ['action', 'flat', 'steps', 'lines'];

const table: readonly (readonly [readonly DialectName[], readonly Row[]])[] = [
  [['action'], action],
  [['flat'], flat],
  [['steps'], steps],
  [['lines'], lines],
  [['lines', 'action'], behindNames],
  [['lines', 'action'], answers],
  [['lines', 'flat'], endings],
  [['flat'], backslashes],
  [all, backslashesInActions],
  [['lines', 'action'], asides],
  [['steps'], remarks('[{"name": "search", "arguments": {"q": "cats"}}]')],
  [['flat'], remarks('{"scratchpad": "s", "tool": "search", "arguments": {"q": "cats"}}')],
  [['action'], remarks('{"tool": "search", "inputs": {"q": "cats"}}')],
  [all, inProse],
  [all, invented],
  [all, drafts],
];

/** Replies as models write them when they do not quite keep to the form. */
export const corpus: readonly Sample[] = table.flatMap(([dialects, rows]) =>
  dialects.flatMap((dialect) =>
    rows.map(([name, text, expected, by = 'local']) => ({
      dialect,
      name,
      text,
      expected,
      by: 'refused' in expected ? 'refused' : by,
    })),
  ),
);
