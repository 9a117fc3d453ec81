/** W78: a component that passes all its props to the DOM. */

import { ArpChat, type ArpComponentProps } from "@agent-rendering/react";

function Spread({
  component,
  context,
  answer,
  action,
  onInput,
  _restored,
  ...props
}: ArpComponentProps & { style?: string }) {
  const { style, ...rest } = props;
  return (
    <div data-style={style}>
      <b {...rest} className="spread">
        spread
      </b>
    </div>
  );
}

export default function App() {
  return <ArpChat url="/" components={{ "x-demo-names": Spread }} />;
}
