"""Convert Python values to components: data frames, models, figures, pictures.

Read in this order: `cell`, `records`, `columns`, `series`, `pictures`, `plotly_figure`, `display`.
"""
