// The plotting script lies packed in the page: it is unpacked when the first plot is drawn, and not before.
{
  let whole;
  const unpack = async () => {
    const text = document.getElementById("packed-plotly").textContent;
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const script = document.createElement("script");
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    script.textContent = await new Response(stream).text();
    document.head.append(script); // the policy of the page knows it by its hash; it sets Plotly anew
    return Plotly;
  };
  globalThis.unpackPlotly = () => (whole ??= unpack());
  globalThis.Plotly = { react: async (...given) => (await unpackPlotly()).react(...given) };
}
