import type { StoredRecord } from 'millrace/journal';
import { parsedJson, isRecord } from 'millrace/values';

/** From one number to the next: a call that is resumed in the middle of a message leaves out 64. */
const strides: readonly number[] = [1, 65];

/** What is wrong with what is written down of one call. */
export const faultsInLog = (records: readonly StoredRecord[]): readonly string[] => {
  const events = records.filter(({ kind }) => kind === 'event');
  const steps = records.filter(({ kind }) => kind === 'step').map(({ name }) => name);
  // Deltas that were recorded together have one position.
  const gap = records.findIndex(({ position, name }, index) => {
    const before = records[index - 1];
    const isTogether = name.endsWith('Chunk') && before?.name === name;
    return (
      position !== (before?.position ?? 0) + 1 && !(isTogether && position === before.position)
    );
  });
  const leap = events.findIndex(
    ({ seq }, index) => !strides.includes(seq - (events[index - 1]?.seq ?? 0)),
  );
  const twice = steps.filter((name, index) => steps.indexOf(name) !== index);
  const own = events.filter(({ text }) => {
    const event = parsedJson(text);
    return isRecord(event) && event['callId'] === event['rootId'];
  });
  const notOnce = ['preCall', 'postCall'].filter(
    (type) => own.filter(({ name }) => name === type).length !== 1,
  );
  return [
    ...(gap === -1 ? [] : [`the record ${gap + 1} is not at its place`]),
    ...(leap === -1 ? [] : [`the event ${leap + 1} has the number ${events[leap]?.seq ?? 'none'}`]),
    ...twice.map((name) => `the step ${name} is there twice`),
    ...notOnce.map((type) => `${type} is not told once`),
  ];
};

/** The idempotency keys of the uses that are written down as done. */
export const keysDone = (records: readonly StoredRecord[]): readonly string[] =>
  records.flatMap(({ kind, name, text }) => {
    const place = /^(.*)\/\d+\/\d+$/u.exec(name)?.[1];
    if (kind !== 'step' || place === undefined) return [];
    const acted = parsedJson(text);
    if (!isRecord(acted) || !isRecord(acted['result']) || !isRecord(acted['toolCall'])) return [];
    const { result, toolCall } = acted;
    const isDone =
      acted['executed'] === true && result['isError'] !== true && result['suspended'] === undefined;
    return isDone && toolCall['name'] !== 'clerk' ? [`${place}/${String(toolCall['id'])}`] : [];
  });
