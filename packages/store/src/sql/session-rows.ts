import type { SessionSummary } from 'millrace/sessions';
import type { Row } from './sql.js';
import { numberIn, textIn } from './text.js';

export const summaryIn = (row: Row): SessionSummary => ({
  id: textIn(row, 'id'),
  ...(row['title'] !== null && { title: textIn(row, 'title') }),
  savedAt: numberIn(row, 'saved_at'),
});
