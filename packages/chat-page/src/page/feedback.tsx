import { useContext, useState } from 'preact/hooks';
import { ActionsContext, Icon } from './pieces.js';

/** Two buttons that say whether an answer was good. */
export const Feedback = ({ answerId }: { readonly answerId: string }) => {
  const actions = useContext(ActionsContext);
  const [given, setGiven] = useState<boolean>();
  const [problem, setProblem] = useState('');
  const rate = (isGood: boolean) => () => {
    const before = given;
    setGiven(isGood);
    setProblem('');
    actions?.rate$(answerId, isGood).subscribe({
      complete: () => actions.announce('Thank you for your feedback.'),
      error: (error: unknown) => {
        setGiven(before);
        setProblem(error instanceof Error ? error.message : 'It failed.');
      },
    });
  };
  return (
    <>
      {([true, false] as const).map((isGood) => {
        const label = isGood ? 'Good answer' : 'Bad answer';
        return (
          <button
            key={label}
            type="button"
            class="quiet"
            aria-label={label}
            title={label}
            aria-pressed={given === isGood}
            onClick={rate(isGood)}
          >
            <Icon name={isGood ? 'good' : 'bad'} />
          </button>
        );
      })}
      {problem !== '' && (
        <small class="failure" role="alert">
          {problem}
        </small>
      )}
    </>
  );
};
