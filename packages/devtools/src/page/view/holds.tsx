// Breakpoints, and the calls that they hold.
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { tap } from 'rxjs';
import { isRecord } from '../model/read-event.js';
import type { Breakpoint, Hold, HoldAction } from '../protocol.js';
import { useDevtools, useKeys } from './state.js';

/** The first hold, with an editor of its event, and how many wait after it. */
export const HoldPanel = ({ shownId }: { readonly shownId: string | undefined }) => {
  const { session } = useDevtools();
  const [hold] = session.holds;
  if (hold === undefined) return null;
  const others = session.holds.length - 1;
  return <HoldEditor key={hold.id} {...{ hold, others, isShown: hold.rootId === shownId }} />;
};

interface HoldProps {
  readonly hold: Hold;
  readonly others: number;
  /** Whether its call is the one that the page shows. */
  readonly isShown: boolean;
}

const HoldEditor = ({ hold, others, isShown }: HoldProps) => {
  const { session, set } = useDevtools();
  const question = session.callsById.get(hold.rootId)?.input;
  const { text, type, original, act } = useEdit(hold);
  const edited = editOf(text, original);
  const problem = typeof edited === 'string' ? edited : undefined;
  useKeys((event) => {
    if (event.key !== 'F8' && event.key !== 'F10') return;
    event.preventDefault();
    act(event.key === 'F8' ? 'continue' : 'step');
  });
  return (
    <section class="hold-panel" aria-label="Held call" data-testid="hold">
      <header>
        <h2>
          <span class="status held">held</span> {hold.event.type}
          <small>
            {hold.agent.join(' › ')} · turn {hold.event.iteration}
            {others > 0 ? ` · ${others} more held` : ''}
            {question === undefined ? '' : ` · ${question}`}
          </small>
        </h2>
        {!isShown && (
          <button type="button" onClick={() => set({ selected: hold.rootId, position: undefined })}>
            Show the call
          </button>
        )}
      </header>
      <textarea
        aria-label="The event as JSON"
        aria-invalid={problem !== undefined}
        aria-describedby="hold-state"
        spellcheck={false}
        value={text}
        onInput={({ currentTarget }) => type(currentTarget.value)}
      />
      <div class="actions">
        <button
          type="button"
          class="primary"
          title="F8"
          disabled={problem !== undefined}
          onClick={() => act('continue')}
        >
          Continue <kbd>F8</kbd>
        </button>
        <button
          type="button"
          title="F10"
          disabled={problem !== undefined}
          onClick={() => act('step')}
        >
          Step <kbd>F10</kbd>
        </button>
        <button
          type="button"
          class="danger"
          title="Drops the event: a vetoed tool call is not run"
          onClick={() => act('veto')}
        >
          Veto
        </button>
        {text !== original && (
          <button type="button" onClick={() => type(original)}>
            Reset
          </button>
        )}
        <span
          id="hold-state"
          role="status"
          class={problem === undefined ? 'hold-state' : 'hold-state bad'}
        >
          {problem ?? (edited === undefined ? '' : 'Edited')}
        </span>
      </div>
    </section>
  );
};

/** The text of the editor, and what sends it: once, or the page says that it was not sent. */
const useEdit = ({ id, event }: Hold) => {
  const { session, client, send, set } = useDevtools();
  const [original] = useState(() => editableText(event));
  const [text, setText] = useState(original);
  // The typed text counts, also before it is drawn.
  const typed = useRef(original);
  const isSent = useRef(false);
  const type = (next: string) => {
    typed.current = next;
    setText(next);
  };
  const act = (action: HoldAction['action']) => {
    const edited = action === 'veto' ? undefined : editOf(typed.current, original);
    if (isSent.current || typeof edited === 'string') return;
    isSent.current = true;
    const given = edited === undefined ? { action } : { action, event: edited };
    send(client.act$(id, given).pipe(tap({ error: () => (isSent.current = false) })));
  };
  useLayoutEffect(
    () => () => {
      if (isSent.current || typed.current === original) return;
      const notice = `The call is no longer held. Your edit of ${event.type} was not sent.`;
      session.take({ line: 'notice', text: notice });
      set({});
    },
    [],
  );
  return { text, type, original, act };
};

const envelope = [
  'type',
  'rootId',
  'callId',
  'parentId',
  'agent',
  'speaks',
  'iteration',
  'seq',
  'at',
  'sessionId',
  'labels',
];

/** The fields of the event that can be edited: its type and its envelope stay. */
const editableText = (event: Hold['event']): string =>
  JSON.stringify(
    Object.fromEntries(Object.entries(event).filter(([name]) => !envelope.includes(name))),
    null,
    2,
  );

/** The edited fields, or the problem of the text; `undefined` if it is the original. */
const editOf = (
  text: string,
  original: string,
): string | Readonly<Record<string, unknown>> | undefined => {
  if (text === original) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : 'The event is a JSON object.';
  } catch (error) {
    return error instanceof Error ? error.message : 'This is not JSON.';
  }
};

const moments: Readonly<Record<string, string>> = {
  preReasoning: 'Before a request to the model: edit its messages',
  reasoningChunk: 'At each delta of the model',
  postReasoning: 'After a message of the model: edit it or its tool calls',
  preActing: 'Before a tool runs: edit its arguments',
  actingChunk: 'At each progress value of a tool',
  postActing: 'After a tool has run: edit its result',
  postCall: 'Before the call ends: edit its reply',
};

/** The types of events that can be held, with a filter each. */
export const Breakpoints = () => {
  const { session, client, send, set } = useDevtools();
  const { holdable, breakpoints } = session;
  if (holdable.length === 0) {
    return <p class="empty">Breakpoints hold running calls. These calls are read from a store.</p>;
  }
  const save = (next: readonly Breakpoint[]) => {
    // The next choice builds on this one, and no update takes it back meanwhile.
    session.take({ line: 'breakpoints', breakpoints: next });
    set({});
    send(client.setBreakpoints$(next));
  };
  return (
    <div class="breakpoints">
      <p>
        A breakpoint holds a call before an event passes its interceptors. The clock of the call
        stands still meanwhile.
      </p>
      <ul>
        {holdable.map((type) => {
          const own = breakpoints.find((breakpoint) => breakpoint.type === type);
          const replace = (...by: readonly Breakpoint[]) =>
            save([...session.breakpoints.filter((each) => each.type !== type), ...by]);
          return (
            <li key={type}>
              <label title={moments[type]}>
                <input
                  type="checkbox"
                  checked={own !== undefined}
                  onChange={() => replace(...(own === undefined ? [{ type }] : []))}
                />
                {type}
              </label>
              {own !== undefined && (
                <Filter
                  type={type}
                  text={own.text ?? ''}
                  save={(text) => replace({ type, ...(text !== '' && { text }) })}
                />
              )}
            </li>
          );
        })}
      </ul>
    </div>
  );
};

/** Typing counts when it pauses this long. */
const pauseMs = 250;

/** The filter of a breakpoint. The text that was typed stays, and is saved when typing pauses. */
const Filter = (props: {
  readonly type: string;
  readonly text: string;
  readonly save: (text: string) => void;
}) => {
  const { type, text, save } = props;
  const [draft, setDraft] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => draft !== text && save(draft), pauseMs);
    return () => {
      clearTimeout(timer);
    };
  }, [draft]);
  return (
    <input
      type="text"
      placeholder="only with this text"
      aria-label={`Hold ${type} only with this text`}
      value={draft}
      onInput={({ currentTarget }) => setDraft(currentTarget.value)}
      onChange={() => draft !== text && save(draft)}
    />
  );
};
