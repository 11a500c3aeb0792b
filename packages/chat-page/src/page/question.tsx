import { useContext, useEffect, useRef, useState } from 'preact/hooks';
import { File } from './file.js';
import { ActionsContext, isInField, isSend, QuietButton } from './pieces.js';
import { plainTextOf, type UiMessage } from './ui-message.js';

/** A message of the user, with its versions. */
export const Question = (props: {
  readonly message: UiMessage;
  /** The ids of its versions, if there are several. */
  readonly versions: readonly string[] | undefined;
  /** Why the conversation cannot be changed now. */
  readonly blocked: string | undefined;
}) => {
  const { message, versions, blocked } = props;
  const [isEdited, setEdited] = useState(false);
  const send = useContext(ActionsContext)?.send;
  const edit = () => {
    setEdited(true);
    send?.({ type: 'editing', messageId: message.id });
  };
  const save = (edited: string) => {
    setEdited(false);
    send?.({ type: 'edit', messageId: message.id, text: edited });
  };
  const cancel = () => {
    setEdited(false);
    send?.({ type: 'editing', messageId: undefined });
  };
  return (
    <article class="question" aria-label="You">
      <h2 class="hidden">You</h2>
      {isEdited ? (
        <EditForm text={plainTextOf(message)} save={save} cancel={cancel} />
      ) : (
        <>
          <Bubble message={message} />
          <div class="actions">
            {versions !== undefined && (
              <Versions shown={message.id} versions={versions} blocked={blocked} />
            )}
            <QuietButton label="Edit" blocked={blocked} act={edit} />
          </div>
        </>
      )}
    </article>
  );
};

/** The versions of a question: edited ones, and the same with another answer. */
const Versions = (props: {
  readonly shown: string;
  readonly versions: readonly string[];
  readonly blocked: string | undefined;
}) => {
  const { shown, versions, blocked } = props;
  const actions = useContext(ActionsContext);
  const at = versions.indexOf(shown);
  const count = versions.length;
  const show = (index: number) => () => {
    const messageId = versions[index];
    if (messageId === undefined) return;
    actions?.send({ type: 'switch', messageId });
    actions?.announce(`Version ${index + 1} of ${count}`);
  };
  return (
    <div class="versions" role="group" aria-label={`Version ${at + 1} of ${count}`}>
      <QuietButton
        label="Previous version"
        icon="previous"
        blocked={at > 0 ? blocked : 'This is the first version.'}
        act={show(at - 1)}
      />
      <span aria-hidden="true">
        {at + 1}/{count}
      </span>
      <QuietButton
        label="Next version"
        icon="next"
        blocked={at < count - 1 ? blocked : 'This is the last version.'}
        act={show(at + 1)}
      />
    </div>
  );
};

export const Bubble = ({ message }: { readonly message: UiMessage }) => {
  const text = plainTextOf(message);
  return (
    <div class="bubble">
      {message.parts.map((part, at) => part.type === 'file' && <File key={at} part={part} />)}
      {text !== '' && <p>{text}</p>}
    </div>
  );
};

const EditForm = (props: {
  readonly text: string;
  readonly save: (text: string) => void;
  readonly cancel: () => void;
}) => {
  const [text, setText] = useState(props.text);
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => field.current?.focus(), []);
  const save = () => {
    if (text.trim() !== '') props.save(text.trim());
  };
  return (
    <form
      class="edit"
      onSubmit={(event) => {
        event.preventDefault();
        save();
      }}
      onKeyDown={(event) => {
        if (event.key === 'Escape') {
          event.stopPropagation();
          props.cancel();
        } else if (isSend(event) && isInField(event)) {
          event.preventDefault();
          save();
        }
      }}
    >
      <textarea
        ref={field}
        aria-label="Edit your message"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <div class="actions">
        <button type="button" onClick={props.cancel}>
          Cancel
        </button>
        <button type="submit" class="primary">
          Send again
        </button>
      </div>
    </form>
  );
};
