// Why something failed: the stack of an error, and its causes.
import { useState } from 'preact/hooks';
import { type Fields, fieldsOf, isRecord, stringOf } from '../model/read-event.js';
import { useDevtools } from './state.js';

/** Causes of causes that are shown. */
const mostCauses = 8;

/** A button that shows the stack and the causes. For an error that has neither, what is known of its request. */
export const ErrorDetails = ({ error }: { readonly error: unknown }) => {
  const [isOpen, setOpen] = useState(false);
  const chain = chainOf(error);
  const [first] = chain;
  if (first === undefined) return null;
  const what = [
    ...(chain.some(({ stack }) => stringOf(stack) !== '') ? ['stack'] : []),
    ...(chain.length > 1 ? ['cause'] : []),
  ].join(' and ');
  if (what === '') return <Facts error={first} />;
  return (
    <div class="error-details">
      <button type="button" class="more" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {isOpen ? 'Hide' : 'Show'} {what}
      </button>
      {isOpen && chain.map((one, index) => <Cause key={index} error={one} isFirst={index === 0} />)}
    </div>
  );
};

const Facts = ({ error: { status, requestId } }: { readonly error: Fields }) => {
  const { session } = useDevtools();
  const facts = [status, requestId].filter((it) => it !== undefined && it !== null).map(String);
  const note = session.source === 'store' ? ['Stores keep no stacks and no causes.'] : [];
  const text = [...facts, ...note].join(' · ');
  return text === '' ? null : <p class="ms">{text}</p>;
};

/** An error, its cause, and so on. */
const chainOf = (error: unknown, depth = 0): readonly Fields[] => {
  if (error === undefined || error === null || depth > mostCauses) return [];
  const fields = isRecord(error) ? error : { message: stringOf(error) };
  return [fields, ...chainOf(fields['cause'], depth + 1)];
};

const Cause = ({ error, isFirst }: { readonly error: Fields; readonly isFirst: boolean }) => {
  const { name, code, message, stack, status, requestId } = fieldsOf(error);
  const facts = [code, status, requestId].filter((it) => it !== undefined && it !== null);
  return (
    <section aria-label={isFirst ? 'Error' : 'Cause'}>
      <h3>
        {isFirst ? '' : 'Caused by '}
        {stringOf(name) || 'Error'}
        {facts.length > 0 && <small> {facts.map(String).join(' · ')}</small>}
      </h3>
      <p>{stringOf(message)}</p>
      {stringOf(stack) !== '' && (
        <pre class="stack" tabIndex={0} aria-label="Stack">
          {stackOf(stringOf(stack))}
        </pre>
      )}
    </section>
  );
};

/** The calls of the program. Those of libraries are in the inspector, unless there are no others. */
const stackOf = (stack: string): string => {
  const calls = stack.split('\n').filter((line) => /^\s*at /u.test(line));
  const own = calls.filter((line) => !/[\\/]node_modules[\\/]|\(?node:/u.test(line));
  const lines = own.length > 0 ? own : calls.length > 0 ? calls : [stack];
  return lines.map((line) => line.trim()).join('\n');
};
