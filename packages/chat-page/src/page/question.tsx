import { useContext, useEffect, useRef, useState } from 'preact/hooks';
import { AttachedFiles, File } from './file.js';
import { ActionsContext, isInField, isSend, QuietButton } from './pieces.js';
import { textPart } from './requests.js';
import { filesIn, plainTextOf, type UiMessage, type UiPart } from './ui-message.js';

/** A message of the user, with its versions. */
export const Question = (props: {
  readonly message: UiMessage;
  /** The ids of its versions, if there are several. */
  readonly versions: readonly string[] | undefined;
  /** Why the conversation cannot be changed now. */
  readonly blocked: string | undefined;
  readonly isEdited: boolean;
}) => {
  const { message, versions, blocked, isEdited } = props;
  const { id } = message;
  const send = useContext(ActionsContext)?.send;
  return (
    <article class="question" aria-label="You">
      <h2 class="hidden">You</h2>
      {isEdited ? (
        <EditForm
          message={message}
          save={(parts) => send?.({ type: 'edit', messageId: id, parts })}
          cancel={() => send?.({ type: 'editing', messageId: undefined })}
        />
      ) : (
        <>
          <Bubble message={message} />
          <div class="actions">
            {versions !== undefined && (
              <Versions shown={message.id} versions={versions} blocked={blocked} />
            )}
            <QuietButton
              label="Edit"
              blocked={blocked}
              act={() => send?.({ type: 'editing', messageId: id })}
            />
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
  readonly message: UiMessage;
  readonly save: (parts: readonly UiPart[]) => void;
  readonly cancel: () => void;
}) => {
  const { message, cancel } = props;
  const [text, setText] = useState(plainTextOf(message));
  const [files, setFiles] = useState(filesIn(message));
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => field.current?.focus(), []);
  const save = () => {
    const written = text.trim() === '' ? [] : [textPart(text.trim())];
    if (written.length + files.length > 0) props.save([...written, ...files]);
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
          cancel();
        } else if (isSend(event) && isInField(event)) {
          event.preventDefault();
          save();
        }
      }}
    >
      <AttachedFiles files={files} change={setFiles} />
      <textarea
        ref={field}
        aria-label="Edit your message"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <div class="actions">
        <button type="button" onClick={cancel}>
          Cancel
        </button>
        <button type="submit" class="primary">
          Send again
        </button>
      </div>
    </form>
  );
};
