import { isRecord } from '../json.js';
import { repairedJson } from '../json-text/repair-json.js';

/**
 * The one object that a model can have meant with arguments that are not JSON. Nothing where there is more than one reading, or where an end is
 * missing: what breaks off may have had more to say.
 */
export const repaired = (text: string): Readonly<Record<string, unknown>> | undefined => {
  const body = unfenced(text.trim());
  if (!body.startsWith('{') || !body.endsWith('}')) return undefined;
  const reading = repairedJson(body);
  return reading !== undefined && !reading.isClosed && isRecord(reading.value)
    ? reading.value
    : undefined;
};

const unfenced = (text: string): string => {
  if (!text.startsWith('```') || !text.endsWith('```')) return text;
  const inner = text.slice(3, -3);
  return (inner.startsWith('json') ? inner.slice(4) : inner).trim();
};
