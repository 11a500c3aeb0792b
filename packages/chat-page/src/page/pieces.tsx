import { type ComponentChildren, createContext } from 'preact';
import { useState } from 'preact/hooks';
import type { Command } from './conversation-state.js';
import type { Verdict } from './server.js';
import type { Settings } from './settings.js';
import type { Observable } from 'rxjs';
import type { SeenApproval } from './approving.js';

/** The actions of the parts of a message. */
export interface Actions {
  readonly send: (command: Command) => void;
  /** Reports text to screen readers, politely. */
  readonly announce: (text: string) => void;
  readonly settings: Settings;
  /** In a frame of another site: the address of the conversation in a tab of its own, where users decide. */
  readonly tab?: string;
  /** Completes when the server has taken the feedback. */
  readonly rate$: (answerId: string, isGood: boolean) => Observable<never>;
  /** Completes when the verdict counts. */
  readonly decide$: (approval: SeenApproval, verdict: Verdict) => Observable<never>;
}

export const ActionsContext = createContext<Actions | undefined>(undefined);

const icons = {
  plus: 'M12 5v14M5 12h14',
  menu: 'M4 7h16M4 12h16M4 17h16',
  pencil: 'M4 20l1-4L16 5l3 3L8 19z',
  cross: 'M6 6l12 12M18 6L6 18',
  moon: 'M20 14A8 8 0 1 1 10 4a6.5 6.5 0 0 0 10 10z',
  sun: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8M12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.5 1.5M17.5 17.5L19 19M19 5l-1.5 1.5M6.5 17.5L5 19',
  check: 'M5 13l5 5L19 7',
  denied: 'M5 12a7 7 0 1 0 14 0 7 7 0 1 0-14 0M7 7l10 10',
  stop: 'M7 7h10v10H7z',
  question: 'M7 8a5 5 0 1 1 7.4 4.4c-1.6.9-2.4 1.8-2.4 3.6M12 21h.01',
  down: 'M12 5v14M6 13l6 6 6-6',
  previous: 'M15 5l-7 7 7 7',
  next: 'M9 5l7 7-7 7',
  good: 'M7 11v9H4v-9zM7 11l4-7c1.5 0 2.5 1 2 3l-.7 3H18c1.5 0 2.3 1 2 2.3l-1.3 6c-.2 1-1 1.7-2 1.7H7',
  bad: 'M7 13V4H4v9zM7 13l4 7c1.5 0 2.5-1 2-3l-.7-3H18c1.5 0 2.3-1 2-2.3l-1.3-6c-.2-1-1-1.7-2-1.7H7',
  bin: 'M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13',
};

export type IconName = keyof typeof icons;

/** A drawing beside a label. */
export const Icon = ({ name }: { readonly name: IconName }) => (
  <svg viewBox="0 0 24 24" aria-hidden="true">
    <path d={icons[name]} />
  </svg>
);

/** The form that had the focus is gone: the next thing is a message. */
export const focusMessage = (): void => {
  document.getElementById('message')?.focus();
};

/** The form of a tool call is gone, or will be: the focus stays in the conversation, at its card. */
export const focusCard = (form: Element | null | undefined): void => {
  const card = form?.closest('.tool');
  (card?.querySelector<HTMLElement>('summary') ?? card?.closest<HTMLElement>('.messages'))?.focus();
};

/**
 * A form was submitted, and will be gone: the focus goes to the card of the next one, or to where people type. There, the keyboard
 * of a touch screen would cover the answer: the focus stays at the card.
 */
export const focusNext = (form: Element | null | undefined): void => {
  const forms = [...document.querySelectorAll('.messages .tool form')];
  const next = forms.slice(forms.findIndex((it) => it === form) + 1).at(0);
  focusCard(next ?? form);
  if (next === undefined && !matchMedia('(hover: none)').matches) focusMessage();
};

/** Moves the focus to the first field with a problem, once it is drawn: screen readers then read the problem. */
export const focusWrong = (form: Element | null): void => {
  requestAnimationFrame(() => {
    const wrong = form?.querySelector<HTMLElement>('[aria-invalid]');
    // A group takes no focus.
    (wrong?.querySelector<HTMLElement>('input, textarea') ?? wrong)?.focus();
  });
};

/** Enter without Shift, unless it ends the input of a character. */
export const isSend = ({ key, shiftKey, isComposing }: KeyboardEvent): boolean =>
  key === 'Enter' && !shiftKey && !isComposing;

/** Whether a key is for a field. On a button, it does what the button says. */
export const isInField = ({ target }: Event): boolean =>
  target instanceof Element && target.matches('input, textarea');

/** The keys of a form of a tool call: Ctrl+Enter in a field submits it, and Esc leaves it, without stopping the answer. */
export const formKeys =
  (leave: (form: HTMLFormElement) => void) =>
  (event: KeyboardEvent & { readonly currentTarget: HTMLFormElement }): void => {
    const { key, ctrlKey, metaKey, isComposing, currentTarget } = event;
    if (isComposing) return;
    if (key === 'Escape') leave(currentTarget);
    else if (key === 'Enter' && (ctrlKey || metaKey) && isInField(event)) {
      currentTarget.requestSubmit();
    } else return;
    event.preventDefault();
  };

export const Working = () => (
  <p class="working" role="img" aria-label="Working">
    <i />
    <i />
    <i />
  </p>
);

/** A quiet button. While something keeps it from acting, it can still be reached, and gives the reason. */
export const QuietButton = (props: {
  readonly label: string;
  /** Shown instead of the label. */
  readonly icon?: IconName;
  readonly blocked: string | undefined;
  readonly act: () => void;
}) => (
  <button
    type="button"
    class="quiet"
    aria-disabled={props.blocked !== undefined}
    aria-label={props.icon && props.label}
    title={props.blocked ?? (props.icon && props.label)}
    onClick={() => {
      if (props.blocked === undefined) props.act();
    }}
  >
    {props.icon === undefined ? props.label : <Icon name={props.icon} />}
  </button>
);

export const Problem = ({
  text,
  retry,
  children,
}: {
  readonly text: string;
  readonly retry?: () => void;
  /** Another way out. */
  readonly children?: ComponentChildren;
}) => (
  <div class="problem" role="alert">
    <p>
      <strong>Error:</strong> {text}
    </p>
    {retry !== undefined && (
      <button type="button" onClick={retry}>
        Try again
      </button>
    )}
    {children}
  </div>
);

/** Opens by itself while `isOpen`, until the user opens or closes it. */
export const Fold = (props: {
  readonly class?: string;
  readonly title: ComponentChildren;
  readonly isOpen?: boolean;
  readonly children: ComponentChildren;
}) => {
  const [chosen, setChosen] = useState<boolean>();
  const isOpen = chosen ?? props.isOpen ?? false;
  return (
    <details class={props.class} open={isOpen}>
      <summary
        onClick={(event) => {
          event.preventDefault();
          setChosen(!isOpen);
        }}
      >
        {props.title}
      </summary>
      {isOpen && <div>{props.children}</div>}
    </details>
  );
};

const maxShown = 20_000;

/** A value as JSON; text as it is. */
export const Json = ({ value }: { readonly value: unknown }) => {
  const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2);
  return (
    <pre class="json" tabIndex={0}>
      {text.length > maxShown ? `${text.slice(0, maxShown)}…` : text}
    </pre>
  );
};

/** Copies text. Its label shows the outcome until it loses the focus. */
export const CopyButton = ({ text }: { readonly text: string }) => {
  const [label, setLabel] = useState('Copy');
  const copy = () => {
    navigator.clipboard.writeText(text).then(
      () => {
        setLabel('Copied');
      },
      () => {
        setLabel('Not copied');
      },
    );
  };
  return (
    <button type="button" class="quiet" onClick={copy} onBlur={() => setLabel('Copy')}>
      {label}
    </button>
  );
};
