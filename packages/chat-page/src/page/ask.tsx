import type { ComponentChildren, RefObject } from 'preact';
import { useContext, useEffect } from 'preact/hooks';
import { ActionsContext, focusCard, formKeys } from './pieces.js';

interface AskProps {
  /** Its name for screen readers. */
  readonly label: string;
  readonly buttons?: ComponentChildren;
  /** Submits it. Without it, this is no form. */
  readonly submit?: (form: HTMLFormElement) => void;
  /** Called by Esc. Default: the focus goes to the card. */
  readonly leave?: (form: HTMLFormElement) => void;
  readonly form?: RefObject<HTMLFormElement | null>;
  /** The question, and the fields for the answer. */
  readonly children: ComponentChildren;
}

/** Asks the user about a tool call. */
export const Ask = (props: AskProps) => {
  const { label, buttons, submit, leave = focusCard, form, children } = props;
  const body = (
    <>
      {children}
      <p class="notice">If you send a message instead, this tool call is cancelled.</p>
      {buttons !== undefined && <div class="actions">{buttons}</div>}
    </>
  );
  return submit === undefined ? (
    <section class="ask" role="group" aria-label={label}>
      {body}
    </section>
  ) : (
    <form
      {...(form !== undefined && { ref: form })}
      class="ask"
      aria-label={label}
      noValidate
      onKeyDown={formKeys(leave)}
      onSubmit={(event) => {
        event.preventDefault();
        submit(event.currentTarget);
      }}
    >
      {body}
    </form>
  );
};

/** In a frame of another site, which could lead clicks to a button, users decide in a tab of its own. */
export const TabLink = ({ tab }: { readonly tab: string }) => (
  <a href={tab} target="_blank" rel="noopener">
    Open in a tab of its own to decide
  </a>
);

/** The choice of the user, while other tool calls of the turn wait: their results go together. */
export const Chosen = (props: {
  readonly label: string;
  readonly toolCallId: string;
  readonly words: string;
  readonly children: ComponentChildren;
}) => {
  const { send, announce } = useContext(ActionsContext) ?? {};
  const { label, words, toolCallId, children } = props;
  const rest = 'It is sent once you have answered the others, too.';
  useEffect(() => announce?.(`${words} ${rest}`), []);
  const change = (
    <button
      type="button"
      onClick={(event) => {
        focusCard(event.currentTarget);
        send?.({ type: 'change', toolCallId });
      }}
    >
      Change
    </button>
  );
  return (
    <Ask label={label} buttons={change}>
      {children}
      <p>{words}</p>
      <p class="notice">{rest}</p>
    </Ask>
  );
};
